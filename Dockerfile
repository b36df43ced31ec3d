# One image; the command decides whether it is web, worker or beat (see compose.yaml).
# A tag says what it is, the digest which bytes; docs/deployment.md says how to look up newer ones.
ARG PYTHON=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
# `watching` adds what traces and Sentry need.
ARG REQUIREMENTS=base
COPY requirements/base.txt requirements/watching.txt /tmp/
RUN /venv/bin/pip install --require-hashes -r /tmp/base.txt -r /tmp/${REQUIREMENTS}.txt

FROM ${PYTHON} AS process
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=gateway.settings
# New volumes of the signer's places belong to the user as they do.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gateway \
    && install -d -o 10001 -g 10001 -m 750 /run/signer /var/lib/signer
WORKDIR /app
COPY --from=build /venv /venv

# Static files are named by their content and compressed. The process `build` needs no secret but SECRET_KEY.
FROM process AS static
COPY . .
RUN mkdir static && GATEWAY_PROCESS=build SECRET_KEY=unused-because-the-build-signs-nothing-and-keeps-no-key ALLOWED_HOSTS=build PUBLIC_URL=https://build AUTH_DOMAIN=build \
    DATABASE_URL=postgresql://build@build/build REDIS_URL=redis://build/0 CHAIN_ID=42 CHAIN_RPC_URLS=http://build \
    python manage.py collectstatic --no-input --skip-checks

FROM process
# A layer of their own: a version that changes none of them shares it with the one before.
COPY --from=static /app/static static
COPY manage.py ./
COPY gateway gateway
COPY users users
COPY credits credits
COPY sponsors sponsors
COPY proofs proofs
COPY rewards rewards
COPY earnings earnings
COPY relay relay
COPY payments payments
COPY checkin checkin
COPY portal portal
COPY backoffice backoffice
COPY accounting accounting
COPY webhooks webhooks
COPY signer signer
COPY templates templates
COPY docs docs
USER 10001
EXPOSE 8000
# Of the shell, for it runs every few seconds, and Python needs ten times the processor time to start.
HEALTHCHECK --interval=10s --timeout=10s --start-period=3m \
    CMD ["timeout", "5", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /healthz HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
CMD ["granian", "--interface", "rsgi", "gateway.web.rsgi:application", "--host", "0.0.0.0", "--port", "8000", "--workers", "1", "--http", "1", "--no-ws", "--backpressure", "65536", "--respawn-failed-workers", "--log-config", "gateway/server-logging.json"]
