const vitest = 'node_modules/vitest/vitest.mjs'
const chaosRun = (file: string) => [[vitest, 'run', '--mode', 'run', `test/chaos/${file}`]]
const buf = 'node_modules/@bufbuild/buf/bin/buf'

/**
 * Groups of commands. A command is a list of Node programs with their arguments, which run one
 * after the other.
 */
export const groups: Record<string, Record<string, string[][]>> = {
  docs: {
    authorization: [[vitest, 'run', 'test/authorization', '--update']],
    errors: [['dev/write-errors.ts']],
    events: [['dev/write-events.ts']],
    metrics: [['dev/write-metrics.ts']],
    settings: [['dev/write-settings.ts']],
    images: [['dev/take-screenshots.ts'], ['dev/take-widget-screenshots.ts'], ['dev/take-console-screenshots.ts']],
    receiver: [['docs/examples/receiver.ts']],
  },
  proto: {
    generate: [[buf, 'generate']],
    release: [[buf, 'build', '-o', 'proto/released.binpb', '--exclude-source-info']],
    check: [['dev/check-proto.ts']],
  },
  bench: {
    default: [['bench/main.ts']],
    mount: [['dev/measure-mount.ts']],
    page: [['bench/measure-page.ts']],
    sizes: [['widget/sizes.ts']],
  },
  conformance: {
    default: [['test/conformance/main.ts']],
  },
  rehearsal: {
    default: [['test/upgrade/main.ts']],
  },
  chaos: {
    default: [['test/chaos/main.ts']],
    bugs: [['test/chaos/bugs.ts']],
    delivery: chaosRun('delivery'),
    isolation: chaosRun('isolation'),
    hostile: chaosRun('hostile'),
    recovery: chaosRun('recovery'),
    soak: [['test/chaos/soak.ts']],
  },
}
