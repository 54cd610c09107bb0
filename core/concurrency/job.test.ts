import { pino } from 'pino'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createJob } from './job.ts'

function newJob(run: () => Promise<unknown>) {
  vi.useFakeTimers()
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'warn', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const job = createJob({ name: 'sweep', everyMs: 1_000, run, logger, random: () => 0.5 })
  job.start()
  onTestFinished(async () => {
    vi.useRealTimers()
    await job.stop()
  })
  return lines
}

const fail = () => Promise.reject(new TypeError('private\n    at forged (/etc/passwd:1:1)'))
const otherFail = () => Promise.reject(new RangeError('private'))

it('logs where the work failed but no message of the error, and logs it again if it still fails after a minute', async () => {
  const lines = newJob(fail)
  await vi.advanceTimersByTimeAsync(59_500)
  const place = expect.stringMatching(/^core\/concurrency\/job\.test\.ts:\d+$/)
  const msg = 'sweep failed; the next run repeats it'
  expect(lines).toMatchObject([{ reason: 'TypeError', place, failures: 1, msg }])
  await vi.advanceTimersByTimeAsync(2_000)
  expect(lines[1]).toMatchObject({ failures: 61, place })
  expect(JSON.stringify(lines)).not.toContain('private')
})

it('logs at once a failure at another place, and the first one after a success', async () => {
  const runs = [fail, otherFail, async () => {}, otherFail, otherFail]
  const lines = newJob(() => runs.shift()!())
  await vi.advanceTimersByTimeAsync(4_500)
  expect(lines.map(({ reason, failures }) => [reason, failures])).toEqual([
    ['TypeError', 1],
    ['RangeError', 2],
    ['RangeError', 1],
  ])
})
