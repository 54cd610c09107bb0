import { pino } from 'pino'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createJob } from './job.ts'

function newJob(run: () => Promise<unknown>, everyMs = 1_000) {
  vi.useFakeTimers()
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'warn', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const job = createJob({ name: 'sweep', everyMs, run, logger, random: () => 0.5 })
  job.start()
  onTestFinished(async () => {
    vi.useRealTimers()
    await job.stop()
  })
  return { lines, job }
}

const fail = () => Promise.reject(new TypeError('private\n    at forged (/etc/passwd:1:1)'))
const otherFail = () => Promise.reject(new RangeError('private'))

it('logs where the work failed but no message of the error, and logs it again if it still fails after a minute', async () => {
  const { lines } = newJob(fail)
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
  const { lines } = newJob(() => runs.shift()!())
  await vi.advanceTimersByTimeAsync(4_500)
  expect(lines.map(({ reason, failures }) => [reason, failures])).toEqual([
    ['TypeError', 1],
    ['RangeError', 2],
    ['RangeError', 1],
  ])
})

it('begins soon after the start, and repeats a failed run within seconds, even if its period is a minute', async () => {
  let runs = 0
  newJob(async () => {
    runs += 1
    if (runs <= 2) await fail()
  }, 60_000)
  await vi.advanceTimersByTimeAsync(2_500)
  expect(runs).toBe(1)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(runs).toBe(3)
  await vi.advanceTimersByTimeAsync(59_000)
  expect(runs).toBe(3)
})

it('runs after its period if its next work is due in a month, or it is woken for then', async () => {
  const monthMs = 31 * 86_400_000
  let runs = 0
  const { job } = newJob(async () => {
    runs += 1
    return monthMs
  }, 60_000)
  job.wake(monthMs)
  await vi.advanceTimersByTimeAsync(2_500)
  job.wake(monthMs)
  await vi.advanceTimersByTimeAsync(59_000)
  expect(runs).toBe(1)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(runs).toBe(2)
})

it('runs at once or later when it is woken, once more if that is during a run, and when its next work is due', async () => {
  const answers: PromiseWithResolvers<number | undefined>[] = []
  const { job } = newJob(() => {
    answers.push(Promise.withResolvers())
    return answers.at(-1)!.promise
  }, 60_000)
  const after = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms)
    return answers.length
  }
  job.wake()
  expect(await after(0)).toBe(1)
  job.wake()
  job.wake(5_000)
  expect(await after(10)).toBe(1)
  answers[0]!.resolve(undefined)
  expect(await after(0)).toBe(2)
  answers[1]!.resolve(3_000)
  expect(await after(2_999)).toBe(2)
  expect(await after(1)).toBe(3)
  answers[2]!.resolve(undefined)
  expect(await after(1)).toBe(3)
  job.wake(5_000)
  job.wake(4_000)
  expect(await after(3_999)).toBe(3)
  expect(await after(1)).toBe(4)
  answers[3]!.resolve(undefined)
  await job.stop()
  job.wake()
  expect(await after(100_000)).toBe(4)
})
