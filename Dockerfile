# syntax=docker/dockerfile:1
# Builds one image per process: docker build --target gateway --tag service-gateway .
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

FROM ${NODE_IMAGE} AS part
ENV NODE_ENV=production METRICS_PORT=9464
WORKDIR /service
COPY --from=dependencies /service/node_modules node_modules
COPY package.json LICENSE ./
COPY proto/gen proto/gen
COPY platform platform
COPY contract contract
COPY core-client core-client
COPY deploy/ready.sh deploy/
LABEL org.opencontainers.image.version=0.2.0
USER node

# In this image, `node core/migrate.ts` migrates the database and `node core/token.ts` creates
# service tokens.
FROM part AS core
COPY core core
EXPOSE 8090 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["bash", "deploy/ready.sh", "8090"]
CMD ["node", "core/main.ts"]

FROM part AS delivery
ENV DELIVERY_PORT=8091
COPY delivery delivery
EXPOSE 8091 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["bash", "deploy/ready.sh", "8091"]
CMD ["node", "delivery/main.ts"]

FROM part AS admin
COPY admin admin
ENTRYPOINT ["node", "admin/main.ts"]

# The example of a service of your own (docs/bots.md).
FROM part AS bot
COPY docs/examples/bot.ts docs/examples/
USER root
RUN mkdir /data && chown node /data
USER node
CMD ["node", "docs/examples/bot.ts"]

FROM part AS gateway
COPY gateway gateway
COPY --from=pages /service/console/dist console/dist
COPY --from=pages /service/widget/dist widget/dist
EXPOSE 8080 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["bash", "deploy/ready.sh", "8080"]
# Bounds the memory of a gateway: without the option, V8 keeps up to 134 MB for new objects.
CMD ["node", "--max-semi-space-size=8", "gateway/main.ts"]
