// Runs a command of a group: `npm run docs -- errors`, `npm run chaos -- bugs`. A group without a
// matching command runs its default, with all arguments.
import { spawn } from 'node:child_process'
import { join } from 'node:path'

const vitest = 'node_modules/vitest/vitest.mjs'
const chaosTests = (file: string) => [[vitest, 'run', '--config', 'test/chaos/vitest.config.ts', file]]
const buf = 'node_modules/@bufbuild/buf/bin/buf'

/** Node programs of each command, with their arguments, run one after the other. */
const groups: Record<string, Record<string, string[][]>> = {
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
    sizes: [['widget/sizes.ts']],
  },
  chaos: {
    default: [['test/chaos/main.ts']],
    bugs: [['test/chaos/bugs.ts']],
    delivery: chaosTests('delivery.chaos'),
    isolation: chaosTests('isolation.chaos'),
    hostile: chaosTests('hostile.chaos'),
    soak: [['test/chaos/soak.ts']],
  },
}

const [group = '', name = '', ...rest] = process.argv.slice(2)
const commands = groups[group] ?? {}
const isNamed = name !== 'default' && Object.hasOwn(commands, name)
const programs = isNamed ? commands[name] : commands.default
if (programs === undefined) {
  console.error(`npm run ${group} -- ${Object.keys(commands).join(' | ')}`)
  process.exit(2)
}
const options = isNamed ? rest : process.argv.slice(3)
for (const program of programs) {
  const code = await run([...program, ...options])
  if (code !== 0) process.exit(code)
}

function run(args: string[]): Promise<number> {
  const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '..'), stdio: 'inherit' })
  // A terminal sends SIGINT to the whole group. The child stops by itself, so this process waits for it.
  const ignore = () => {}
  const forward = () => void child.kill('SIGTERM')
  process.on('SIGINT', ignore).on('SIGTERM', forward)
  return new Promise((resolve) => {
    child.on('error', () => resolve(1))
    child.on('exit', (code) => {
      process.off('SIGINT', ignore).off('SIGTERM', forward)
      resolve(code ?? 1)
    })
  })
}
