const vitest = 'node_modules/vitest/vitest.mjs'
/** Tests that take options or need more than Node. Their files end with `.run.ts`. */
const runOf = (tests: string) => [[vitest, 'run', '--mode', 'run', tests]]

/** A command is a list of Node programs with arguments, which run one after the other. */
export const groups: Record<string, Record<string, string[][]>> = {
  make: {
    authorization: [[vitest, 'run', 'test/authorization', '--update']],
    errors: [['dev/make/errors.ts']],
    events: [['dev/make/events.ts']],
    images: [['test/images/main.ts']],
    metrics: [['dev/make/metrics.ts']],
    pack: [['dev/make/pack.ts']],
    proto: [['node_modules/@bufbuild/buf/bin/buf', 'generate']],
    release: [['dev/make/release.ts']],
    secrets: [['dev/make/secrets.ts']],
    settings: [['dev/make/settings.ts']],
    token: [['dev/make/token.ts']],
  },
  bench: {
    default: [['bench/main.ts']],
    sizes: [['widget/sizes.ts']],
  },
  conformance: {
    default: [['test/conformance/main.ts']],
    pack: [['test/conformance/pack.ts']],
  },
  verify: {
    audit: [['dev/audit.ts']],
    browsers: runOf('other-browsers'),
    cluster: [['test/cluster/main.ts']],
    deployment: runOf('test/deployment/images'),
    fuzz: [['test/fuzz/main.ts']],
    mutation: [['test/mutation/main.ts']],
    newcomer: runOf('test/deployment/newcomer'),
    packages: runOf('test/packages'),
    proto: [['dev/check-proto.ts']],
    small: runOf('test/deployment/small'),
    rehearsal: [['test/upgrade/main.ts']],
  },
  chaos: {
    default: [['test/chaos/main.ts']],
    bugs: [['test/chaos/bugs.ts']],
    delivery: runOf('test/chaos/delivery'),
    isolation: runOf('test/chaos/isolation'),
    hostile: runOf('test/chaos/hostile'),
    recovery: runOf('test/chaos/recovery'),
    soak: [['test/chaos/soak.ts']],
  },
}
