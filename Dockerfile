# syntax=docker/dockerfile:1
# Builds one image with all roles: docker build --tag service . The first argument of a container is its role:
# serve (the default), gateway, core, delivery, admin, migrate, token, backup or restore.
# For repeatable builds, pin the base image by its digest:
#   --build-arg NODE_IMAGE=node:24-slim@sha256:…
ARG NODE_IMAGE=node:24-slim

# Builds the console's and the widget's files for browsers.
FROM ${NODE_IMAGE} AS pages
WORKDIR /service
COPY package.json package-lock.json .npmrc ./
COPY widget/package.json widget/
COPY webhooks/package.json webhooks/
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

# Runtime dependencies only. The test database engine is a development dependency and is left out.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /service
COPY package.json package-lock.json .npmrc ./
COPY widget/package.json widget/
COPY webhooks/package.json webhooks/
RUN npm ci --ignore-scripts --omit=dev

FROM ${NODE_IMAGE} AS service
RUN mkdir --mode 700 /data && chown node /data
ENV NODE_ENV=production DATA_DIR=/data GATEWAY_HOST=:: METRICS_HOST=:: METRICS_PORT=9464 DELIVERY_PORT=8091
WORKDIR /service
COPY --from=dependencies /service/node_modules node_modules
COPY package.json LICENSE ./
COPY proto/gen proto/gen
COPY platform platform
COPY contract contract
COPY core-client core-client
COPY core core
COPY gateway gateway
COPY delivery delivery
COPY admin admin
COPY serve serve
COPY deploy/ready.sh deploy/
COPY --from=pages /service/console/dist console/dist
COPY --from=pages /service/widget/dist widget/dist
COPY --from=pages /service/.cache/stripped .cache/stripped
LABEL org.opencontainers.image.version=0.2.0
USER node
EXPOSE 8080 8090 8091 9464
HEALTHCHECK --interval=5s --start-period=60s CMD ["bash", "deploy/ready.sh", "8080"]
# The heap grows to at most half of the container's memory. Without the second option, V8 keeps up to 134 MB for
# new objects.
ENTRYPOINT ["node", "--import=./platform/stripped.mjs", "--max-old-space-size-percentage=50", "--max-semi-space-size=8", "serve/run.ts"]
CMD ["serve"]

# The example of a service of your own (docs/bots.md).
FROM service AS bot
COPY docs/examples/bot.ts docs/examples/
ENTRYPOINT ["node"]
CMD ["docs/examples/bot.ts"]

# The last stage is the one that is built by default.
FROM service
