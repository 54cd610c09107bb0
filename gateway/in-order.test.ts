import { expect, it } from 'vitest'
import { type Check, inOrder } from './in-order.ts'

/** Runs the checks. Returns the error of the hook, and whether the hook returned before all checks had ended. */
async function runChecks(checks: Check[]) {
  const outcome = Promise.withResolvers<unknown>()
  let isPending = true
  inOrder(checks)(
    {} as never,
    {} as never,
    ((error?: unknown) => {
      isPending = false
      outcome.resolve(error)
    }) as never,
  )
  const waited = isPending
  return { waited, error: await outcome.promise }
}

it('inOrder runs all checks synchronously if none returns a promise', async () => {
  expect(await runChecks([() => {}, () => {}])).toEqual({ waited: false, error: undefined })
})

it('inOrder runs each check once and in order, even after a check that waits', async () => {
  const ran: number[] = []
  const check = (index: number, waits: boolean): Check => {
    return () => {
      ran.push(index)
      return waits ? Promise.resolve() : undefined
    }
  }
  const { waited, error } = await runChecks([check(0, false), check(1, true), check(2, false), check(3, true)])
  expect([ran, waited, error]).toEqual([[0, 1, 2, 3], true, undefined])
})

it('inOrder stops at the first check that throws or rejects', async () => {
  const failure = new Error('refused')
  const refused: Check = () => {
    throw failure
  }
  let later = 0
  const count: Check = () => {
    later += 1
  }
  for (const failing of [refused, () => Promise.reject(failure)]) {
    expect(await runChecks([() => Promise.resolve(), failing, count])).toEqual({ waited: true, error: failure })
    expect((await runChecks([failing, count])).error).toBe(failure)
  }
  expect(later).toBe(0)
})
