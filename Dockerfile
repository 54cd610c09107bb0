# syntax=docker/dockerfile:1
# One image for each part: docker build --target gateway --tag service-gateway .
# The same image by digest makes a build that can be repeated: --build-arg NODE_IMAGE=node:24-slim@sha256:…
ARG NODE_IMAGE=node:24-slim

# The console and the widget, as browsers load them.
FROM ${NODE_IMAGE} AS pages
WORKDIR /service
COPY package.json package-lock.json .npmrc ./
COPY widget/package.json widget/
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

# What the parts need to run: no development dependency, and so no embedded database engine.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /service
COPY package.json package-lock.json .npmrc ./
COPY widget/package.json widget/
RUN npm ci --ignore-scripts --omit=dev

FROM ${NODE_IMAGE} AS part
ENV NODE_ENV=production METRICS_PORT=9464
WORKDIR /service
COPY --from=dependencies /service/node_modules node_modules
COPY package.json LICENSE ./
COPY proto/gen proto/gen
COPY platform platform
USER node

# `node core/migrate.ts` brings the database up to date, `node core/token.ts` makes service tokens.
FROM part AS core
COPY core core
EXPOSE 8090 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:8090/readyz').then(({ ok }) => process.exit(ok ? 0 : 1))"]
CMD ["node", "core/main.ts"]

FROM part AS delivery
ENV DELIVERY_PORT=8091
COPY core-client core-client
COPY delivery delivery
EXPOSE 8091 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:8091/readyz').then(({ ok }) => process.exit(ok ? 0 : 1))"]
CMD ["node", "delivery/main.ts"]

FROM part AS admin
COPY core-client core-client
COPY admin admin
ENTRYPOINT ["node", "admin/main.ts"]

FROM part AS gateway
COPY core-client core-client
COPY gateway gateway
COPY --from=pages /service/console/dist console/dist
COPY --from=pages /service/widget/dist widget/dist
EXPOSE 8080 9464
HEALTHCHECK --interval=5s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then(({ ok }) => process.exit(ok ? 0 : 1))"]
CMD ["node", "gateway/main.ts"]
