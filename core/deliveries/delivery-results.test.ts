import { describe, expect, it } from 'vitest'
import type { AttemptFacts } from '../deliveries/model.ts'
import { at, knownAt, newScene, result, stored } from '../test/delivery-results.ts'
import { settlementWrites } from './queue.ts'
import type { AttemptResult } from './results.ts'

const day = 86_400_000
const { claimed: _, ...unclaimed } = result({ status: 200 })

describe('results', () => {
  const deleteAt = new Date(at + 90 * day)
  const retry = (afterMs: number) => ({
    attemptId: expect.stringMatching(/^att_/),
    correlationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    dueAt: new Date(at + afterMs),
  })

  it.each<[AttemptFacts, number, object, object]>([
    [{ status: 200 }, 1, { status: 'accepted', responseClass: 'accepted', responseStatus: 200 }, { deleteAt }],
    [{ status: 400 }, 2, { status: 'failed', responseClass: 'rejected_payload', responseStatus: 400 }, { deleteAt }],
    [
      { status: 500 },
      1,
      { status: 'retry_scheduled', responseClass: 'server_error', responseStatus: 500 },
      { retry: retry(5000) },
    ],
    [
      { status: 400, text: 'The field email is missing.' },
      1,
      {
        status: 'failed',
        responseClass: 'rejected_payload',
        responseStatus: 400,
        responseText: 'The field email is missing.',
      },
      { deleteAt },
    ],
    [
      { status: 200, text: 'thanks' },
      1,
      { status: 'accepted', responseClass: 'accepted', responseStatus: 200 },
      { deleteAt },
    ],
    [
      { status: 429, retryAfterMs: 60_000 },
      2,
      { status: 'retry_scheduled', responseClass: 'rate_limited', responseStatus: 429 },
      { retry: retry(60_000) },
    ],
    [
      { reason: 'timeout', phase: 'headers' },
      1,
      { status: 'retry_scheduled', responseClass: 'timeout', failureReason: 'timeout', failurePhase: 'headers' },
      { retry: retry(5000) },
    ],
    [
      { reason: 'destination_blocked' },
      1,
      { status: 'failed', responseClass: 'destination_blocked', failureReason: 'destination_blocked' },
      { deleteAt },
    ],
  ])(
    'a result with %j of attempt %i is recorded without reading the delivery',
    async (facts, attemptNumber, outcome, rest) => {
      const { record, seen, attempts } = newScene()
      expect(await record([result(facts, { claimed: { attemptNumber, subscriptionId: 'sub_1' } })])).toEqual([true])
      expect(seen.settled).toEqual([
        {
          kind: 'outcome',
          deliveryId: 'dlv_1',
          claimId: 'clm_1',
          at: new Date(at),
          attemptId: 'att_1',
          index: attemptNumber - 1,
          outcome: { durationMs: 7, claimId: 'clm_1', ...outcome },
          ...rest,
        },
      ])
      const { status, responseClass } = outcome as Record<string, string>
      expect(await attempts()).toEqual([`${status} ${responseClass} 1`])
      expect([seen.asked, seen.announced, seen.faults, seen.reset, seen.changed]).toEqual([[], 0, [], [], []])
    },
  )

  it.each([
    [['server_error', 'server_error'], 'unreadable_answer', 'retry_scheduled'],
    [['server_error', 'unreadable_answer', 'timeout'], 'unreadable_answer', 'retry_scheduled'],
    [['unreadable_answer', 'unreadable_answer'], 'unreadable_answer', 'failed'],
    [['unreadable_answer', 'server_error', 'unreadable_answer'], 'unreadable_answer', 'failed'],
    [['unreadable_answer', 'unreadable_answer', 'unreadable_answer'], 'server_error', 'retry_scheduled'],
  ])('after the attempts %j, a delivery with %s is %s', async (classes, responseClass, status) => {
    const earlier = classes.map((name) => ({ attemptId: `att_${name}`, outcome: { responseClass: name } }))
    const before = [stored({ attempts: [...earlier, { attemptId: 'att_1' }] })]
    const { record, seen } = newScene({ before })
    const claimed = { attemptNumber: before[0]!.attempts.length, subscriptionId: 'sub_1' }
    const facts: AttemptFacts =
      responseClass === 'server_error' ? { status: 500 } : { reason: 'protocol_error', phase: 'headers' }
    expect(await record([result(facts, { claimed })])).toEqual([true])
    expect(seen.settled).toMatchObject([{ index: classes.length, outcome: { status, responseClass } }])
  })

  it('a dead letter is stored together with its fault, so that a job handles the fault if the core dies', async () => {
    const { record, seen } = newScene()
    await record([result({ status: 500 }, { claimed: { attemptNumber: 9, subscriptionId: 'sub_1' } })])
    const fault = { kind: 'dead_lettered', attemptId: 'att_1', sentAt: new Date(at) }
    expect(seen.settled).toMatchObject([{ outcome: { status: 'dead_lettered' }, fault, deleteAt }])
    expect([seen.asked, seen.faults]).toEqual([[], [{ ...fault, deliveryId: 'dlv_1', subscriptionId: 'sub_1' }]])
  })

  it('for a result without attempt number and subscription id, the core reads the delivery first', async () => {
    const { record, seen } = newScene({ before: [stored()] })
    expect(await record([unclaimed])).toEqual([true])
    expect(seen.asked).toEqual([['dlv_1']])
    expect(seen.settled).toMatchObject([{ index: 2, outcome: { status: 'accepted' } }])
  })

  it.each([
    ['no such delivery', []],
    ['the delivery with another claim', [stored({ claim: { claimId: 'clm_2' } })]],
    ['the delivery without a claim', [stored({ claim: undefined })]],
    ['the delivery with another status', [stored({ status: 'retry_scheduled' })]],
    ['the delivery with a later attempt', [stored({ attempts: [{ attemptId: 'att_1' }, { attemptId: 'att_2' }] })]],
    ['the delivery without an attempt', [stored({ attempts: [] })]],
  ])('a result changes nothing if the store has %s', async (_, before) => {
    const { record, seen, attempts } = newScene({ before })
    expect(await record([unclaimed])).toEqual([false])
    expect([seen.settled, seen.announced, seen.lookedUp, await attempts()]).toEqual([[], 0, [], []])
  })

  it('for a result with status 410, the core reads the delivery first, and disables the subscription', async () => {
    const { record, seen } = newScene({ before: [stored()] })
    expect(await record([result({ status: 410 })])).toEqual([true])
    const fault = { kind: 'gone', attemptId: 'att_1', sentAt: knownAt }
    expect(seen.asked).toEqual([['dlv_1']])
    expect(seen.settled).toMatchObject([{ fault }])
    expect(seen.faults).toEqual([{ ...fault, deliveryId: 'dlv_1', subscriptionId: 'sub_1' }])
  })

  it('for a result with status 401, the fault gets the current time if the stored claim has no `knownAt`', async () => {
    const { record, seen } = newScene({ before: [stored({ claim: { claimId: 'clm_1' } })] })
    await record([result({ status: 401 })])
    expect(seen.faults).toMatchObject([{ sentAt: new Date(at) }])
    // The delivery was deleted, so the core uses the subscription id that the worker sent.
    const gone = newScene()
    await gone.record([result({ status: 401 })])
    expect(gone.seen.faults).toMatchObject([{ sentAt: new Date(at), subscriptionId: 'sub_1' }])
  })

  it('a result with status 410 is reported as recorded even if disabling the subscription fails; only the name of the error is logged', async () => {
    const { record, seen } = newScene({ before: [stored()], isApplyFailing: true })
    expect(await record([result({ status: 410 })])).toEqual([true])
    expect(seen.warned).toEqual([[{ reason: 'TypeError' }, expect.stringContaining('will retry')]])
  })

  it('a result is recorded while the fault of another destination is handled, also if both came together', async () => {
    const release = Promise.withResolvers<void>()
    const { add } = newScene({ before: [stored()], apply: () => release.promise })
    const bad = add(result({ status: 410 }))
    const other = { deliveryId: 'dlv_2', claimed: { attemptNumber: 1, subscriptionId: 'sub_2' } }
    expect(await add(result({ status: 200 }, other))).toBe(true)
    expect(
      await Promise.all(['dlv_3', 'dlv_4'].map((deliveryId) => add(result({ status: 200 }, { ...other, deliveryId })))),
    ).toEqual([true, true])
    expect(await Promise.race([bad, 'is handled'])).toBe('is handled')
    release.resolve()
    expect(await bad).toBe(true)
  })

  it('a result that returns a delivery unsent ends its claim and wakes waiting workers', async () => {
    const { record, seen, attempts } = newScene()
    expect(await record([result('released'), result('released', { deliveryId: 'dlv_2' })])).toEqual([true, true])
    expect(seen.settled[0]).toStrictEqual({ kind: 'release', deliveryId: 'dlv_1', claimId: 'clm_1', at: new Date(at) })
    expect([seen.settled.length, seen.announced, seen.asked, seen.lookedUp]).toEqual([2, 1, [], []])
    expect(await attempts()).toEqual([])
  })

  it('a result that returns a delivery unsent wakes waiting workers once, even in a batch with other results', async () => {
    const { record, seen } = newScene()
    await record([result({ status: 200 }), result('released', { deliveryId: 'dlv_2' })])
    expect(seen.announced).toBe(1)
  })
})

describe('results that changed nothing in the database', () => {
  const storedLater = [
    stored({ attempts: [{ attemptId: 'att_1', outcome: { claimId: 'clm_1' } }, { attemptId: 'att_2' }] }),
    stored({ deliveryId: 'dlv_2', attempts: [{ attemptId: 'att_1', outcome: { claimId: 'clm_2' } }] }),
    stored({ deliveryId: 'dlv_3', attempts: [{ attemptId: 'att_0', outcome: { claimId: 'clm_1' } }] }),
    stored({ deliveryId: 'dlv_4', releasedClaimId: 'clm_1' }),
    stored({ deliveryId: 'dlv_5', releasedClaimId: 'clm_2' }),
  ]

  it('a result that changed nothing is reported as recorded only if a result of the same claim is already stored', async () => {
    const { record, seen, attempts } = newScene({ after: storedLater, written: 0 })
    const sent = ['dlv_1', 'dlv_2', 'dlv_3'].map((deliveryId) => result({ status: 200 }, { deliveryId }))
    const released = ['dlv_4', 'dlv_5', 'dlv_6'].map((deliveryId) => result('released', { deliveryId }))
    expect(await record([...sent, ...released])).toEqual([true, false, false, true, false, false])
    expect(seen.asked).toEqual([['dlv_1', 'dlv_2', 'dlv_3', 'dlv_4', 'dlv_5', 'dlv_6']])
    expect(await attempts()).toEqual(['accepted accepted 1'])
  })

  it('a result is reported as not recorded if an earlier result of the batch names another claim of the same delivery', async () => {
    const { record, seen } = newScene({ after: storedLater })
    const second = result({ status: 500 }, { claimId: 'clm_9' })
    expect(await record([result({ status: 200 }), result({ status: 200 }), second])).toEqual([true, true, false])
    expect(seen.settled).toMatchObject([{ outcome: { status: 'accepted' } }])
    expect(seen.asked).toEqual([['dlv_1']])
  })
})

describe('the count of 404 answers', () => {
  const of = (subscriptionId: string, deliveryId: string, status = 200) =>
    result({ status }, { deliveryId, claimed: { attemptNumber: 1, subscriptionId } })

  it('the count of 404 answers is reset by any other answer, but only once per subscription', async () => {
    const { record, seen } = newScene({ rows: ['sub_1', 'sub_2'] })
    await record([of('sub_1', 'a'), of('sub_1', 'b', 500), of('sub_2', 'c'), of('sub_3', 'd'), of('sub_gone', 'e')])
    expect(seen.lookedUp).toEqual(['sub_1', 'sub_2', 'sub_3', 'sub_gone'])
    expect([seen.reset, seen.changed]).toEqual([
      ['sub_1', 'sub_2'],
      ['sub_1', 'sub_2'],
    ])
  })

  it('the count of 404 answers is not reset by a 404 answer, by a delivery that is returned unsent, or by a result that changed nothing', async () => {
    const late = newScene({ rows: ['sub_1'], written: 0 })
    await late.record([of('sub_1', 'a')])
    const notFound = newScene({ rows: ['sub_1'], before: [stored()] })
    await notFound.record([result({ status: 404 }), result('released', { deliveryId: 'b' })])
    expect([late.seen.reset, notFound.seen.reset]).toEqual([[], []])
  })
})

describe('validation of results', () => {
  it.each<[string, AttemptResult, string, string]>([
    ['status 99', result({ status: 99 }), '/results/0/response/status', 'minimum'],
    ['status 600', result({ status: 600 }), '/results/0/response/status', 'maximum'],
    [
      'attempt 0',
      result({ status: 200 }, { claimed: { attemptNumber: 0, subscriptionId: 's' } }),
      '/results/0/attemptNumber',
      'minimum',
    ],
    [
      'attempt 1001',
      result('released', { claimed: { attemptNumber: 1001, subscriptionId: 's' } }),
      '/results/0/attemptNumber',
      'maximum',
    ],
  ])('the recording of results rejects %s', async (_, one, path, rule) => {
    const { record, seen } = newScene()
    await expect(record([one])).rejects.toMatchObject({ code: 'ValidationFailed', issues: [{ path, rule }] })
    expect(seen.settled).toEqual([])
  })

  it('a single result is written without a pipeline, because that is cheaper, and equal results share a write', () => {
    const ended = (deliveryId: string) => ({
      ...{ kind: 'outcome' as const, deliveryId, claimId: 'clm', attemptId: `att ${deliveryId}`, index: 0 },
      ...{ at: new Date(at), outcome: { status: 'accepted', responseClass: 'accepted', durationMs: 5 } as const },
    })
    const [single] = settlementWrites([ended('one')])
    expect(single).toMatchObject({ updateOne: { update: { $set: { status: 'accepted' }, $unset: { body: '' } } } })
    expect(settlementWrites([ended('one'), ended('two')])).toMatchObject([{ updateMany: { update: [{}, {}] } }])
  })

  it('a thousand results that arrive together are recorded', async () => {
    const many = Array.from({ length: 1000 }, (_, index) =>
      result({ reason: 'timeout' }, { deliveryId: `dlv_${index}` }),
    )
    const { record, seen } = newScene()
    expect(await record(many)).toHaveLength(1000)
    const claimed = { attemptNumber: 1000, subscriptionId: 's' }
    await record([result({ status: 599 }, { claimed }), result({ status: 100 }, { deliveryId: 'b' })])
    expect(seen.settled).toHaveLength(1002)
  })
})
