-- name: carried_out
-- The requests that were carried out, as the audit log shows too, under the name of whoever decided.
(
    SELECT approval.* FROM gateway_admin_approvalrequest AS approval
    JOIN (
        SELECT DISTINCT user_id, substring(change_message FROM '"approval": \{"request": ([0-9]+),') AS request
        FROM django_admin_log WHERE change_message LIKE '%"approval": {"request": %"status": "done"}%'
    ) AS logged ON logged.request = approval.id::text
        AND logged.user_id = coalesce(approval.decided_by_id, approval.requested_by_id)
    WHERE approval.status = 'done'
)
