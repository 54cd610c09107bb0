import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'

/** Logs as many lines of a kilobyte as each line of its input says, and prints its metrics to the standard error. */
const program = `
  import { createInterface } from 'node:readline'
  import { createLogger } from './logger.ts'
  import { createProcessMetrics } from './process-metrics.ts'
  const logger = createLogger('test', 'info')
  const { registry } = createProcessMetrics()
  for await (const count of createInterface({ input: process.stdin })) {
    for (let i = 0; i < Number(count); i += 1) logger.info('x'.repeat(1000))
    await new Promise((resolve) => setImmediate(resolve))
    if (count === '5') logger.fatal('a fatal line does not wait for space')
    console.error((await registry.metrics()).match(/^service_log_lines_dropped_total .*/m)[0])
  }
`

/** Starts the program with the redirection of a shell. */
function start(redirection: string) {
  const command = `${redirection}; exec "$0" --input-type=module -e "$1"`
  const child = spawn('bash', ['-c', command, process.execPath, program], {
    cwd: join(import.meta.dirname, '../../platform/observability'),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const errors = text(child.stderr)
  let seen = ''
  child.stderr.on('data', (chunk) => {
    seen += chunk
  })
  const ended = new Promise((resolve) => child.on('exit', resolve))
  return {
    pid: child.pid,
    log: (count: number) => child.stdin.write(`${count}\n`),
    seen: () => seen,
    async end() {
      child.stdin.end()
      return { code: await ended, errors: await errors }
    },
  }
}

it('drops and counts lines while the disk is full, serves on, and says so when there is space again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'logger-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'log')
  // Writes above the limit fail, as on a full disk.
  const part = start(`ulimit -S -f 16; exec >> ${file}`)
  part.log(3_000)
  await expect.poll(part.seen).toMatch(/dropped_total [1-9]/)
  const first = part.seen()
  part.log(3_000)
  await expect.poll(part.seen).not.toBe(first)
  const dropped = /(\d+)\n$/.exec(part.seen())![1]
  expect(Number(dropped)).toBeGreaterThan(3_000)
  execFileSync('prlimit', ['--pid', String(part.pid), '--fsize=unlimited'])
  const said = () => /"dropped":(\d+),"msg":"log lines were dropped, because/.exec(readFileSync(file, 'utf8'))?.[1]
  await expect.poll(said).toBe(dropped)
  part.log(1)
  expect(await part.end()).toMatchObject({ code: 0 })
})

it.each(someOf(['/dev/full', '&-'], 1))('ends with its own exit code if standard output is %s', async (target) => {
  const part = start(`exec > ${target}`.replace('> &-', '>&-'))
  part.log(5)
  await expect.poll(part.seen).toContain('dropped_total 0')
  expect(await part.end()).toEqual({ code: 0, errors: 'service_log_lines_dropped_total 0\n' })
})
