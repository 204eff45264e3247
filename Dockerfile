# One image, three commands: `serve` (the API, the default), `worker` (the workers) and `migrate` (run once a deploy).
# It needs DATABASE_URL: the embedded PostgreSQL is for development and is left out.
ARG NODE_VERSION=22

FROM node:${NODE_VERSION}-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: `prepare` compiles, and the sources are not here yet, so that this layer is kept until the lock changes.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs scripts/build.mjs
COPY src src
COPY workers workers
RUN npm run build \
 && rm -f dist/.tsbuildinfo \
 && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:${NODE_VERSION}-slim
WORKDIR /app
# Inside a container the loopback is nobody's: both listeners are on its network. Publish the API's port alone.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 ADMIN_HOST=0.0.0.0 ADMIN_PORT=9464
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY drizzle drizzle
COPY docs docs
# The files stay root's: the process can read itself, and cannot change itself.
USER node
EXPOSE 3000 9464
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.ADMIN_PORT + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# SIGTERM lets requests and provider calls end: give it more than SHUTDOWN_GRACE_MS (`docker stop --time 30`).
ENTRYPOINT ["node", "dist/src/cli/main.js"]
CMD ["serve"]
