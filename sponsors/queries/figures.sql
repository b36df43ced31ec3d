-- name: budget
-- The budget of a sponsor with what is used of it, by scope.
SELECT budget.scope, budget.ends, budget.most_credits, coalesce(used.credits, 0)
FROM sponsors_budget_of(%(sponsor)s::bigint, %(now)s::timestamptz) AS budget
LEFT JOIN sponsors_budgetuse AS used
  ON used.sponsor_id = %(sponsor)s AND used.scope = budget.scope AND used.begins = budget.begins
ORDER BY budget.ends
