import type { SourceChange } from '../support/source-copy.ts'
import type { FaultName } from './faults.ts'

/** A bug that existed or is likely. Replacements in the source insert the bug. */
export interface KnownBug {
  name: string
  /** Faults that the chaos run causes. With these faults, it must detect the bug. */
  faults: FaultName[]
  /** Length of a run, if one fault takes longer than a short run. */
  minutes?: number
  changes: SourceChange[]
}

export const knownBugs: KnownBug[] = [
  {
    name: 'a restored backup keeps the epochs of its logs',
    faults: ['restore'],
    minutes: 1,
    changes: [{ folder: 'core/log', from: 'epoch: epochIn(history, rest.epoch),', to: 'epoch: rest.epoch,' }],
  },
  {
    name: 'a repeated ban skips sessions that are already banned',
    faults: ['hint-lost'],
    changes: [
      {
        folder: 'core/bans',
        from: 'findIds(db.sessions, { ...visitor, endsAt: { $gt: at } }',
        to: "findIds(db.sessions, { ...visitor, status: 'active' }",
      },
      {
        folder: 'core/wakeups',
        from: 'const defaultMaxAgeMs = 5_000',
        to: 'const defaultMaxAgeMs = Number.POSITIVE_INFINITY',
      },
    ],
  },
  {
    name: 'acknowledges a write before it is journaled',
    faults: ['engine-killed'],
    changes: [
      {
        folder: 'core/database',
        from: 'return isSingle ? { w: 1, journal: true }',
        to: 'return isSingle ? { w: 1, journal: false }',
      },
    ],
  },
  {
    name: 'treats a broken connection as a written batch',
    faults: ['engine-killed', 'engine-cut'],
    changes: [{ folder: 'core', from: 'if (isUnknown) throw error', to: '' }],
  },
  {
    name: 'accepts results without the current claim',
    faults: ['worker-stopped'],
    changes: [
      {
        folder: 'core/deliveries',
        from: "return status === 'sending' && claim?.claimId === claimId &&",
        to: "return status === 'sending' &&",
      },
      {
        folder: 'core/deliveries',
        from: "    'claim.claimId': claimId,\n    attempts: {",
        to: '    attempts: {',
      },
    ],
  },
  {
    name: 'a retry sends the text of a withdrawn message',
    // Retries come five seconds later.
    faults: ['worker-stopped'],
    minutes: 0.5,
    changes: [
      { folder: 'core/deliveries', from: '  await withdrawFromDeliveries(core, redactions)\n', to: '' },
      {
        folder: 'core/deliveries',
        from: "{ $or: places, 'message.redactedAt': { $exists: true } }",
        to: "{ $or: places, 'message.redactedAt': { $exists: false }, sequence: 0 }",
      },
    ],
  },
  {
    name: 'a part of a growing answer is acknowledged before it is written',
    faults: ['core-killed'],
    changes: [
      {
        folder: 'core/conversations',
        from: 'if (!(await writes.add({ event, next }))) return undefined',
        to: 'setTimeout(() => void writes.add({ event, next }).catch(() => {}), 300)',
      },
    ],
  },
  {
    name: 'the text of a growing answer is in the memory of one core until the end',
    faults: ['core-killed'],
    changes: [
      {
        folder: 'core/conversations',
        from: "$set: { 'message.body': message.body,",
        to: "$set: { ...(growth.state !== 'growing' && { 'message.body': message.body }),",
      },
    ],
  },
  {
    name: 'a growing answer goes on after its stop',
    faults: ['worker-stopped'],
    minutes: 0.5,
    changes: [
      {
        folder: 'core/conversations',
        from: "filter: { ...placeOf(event), 'growth.state': 'growing', 'growth.length': event.growth.length },",
        to: "filter: { ...placeOf(event), 'growth.length': event.growth.length },",
      },
    ],
  },
  {
    name: 'a replay starts one event too late',
    faults: ['answers-broken'],
    changes: [
      {
        folder: 'core/streams',
        from: 'async function read(conversationId: string, after: number, through: number, limit: number, transient = false) {',
        to: 'async function read(conversationId: string, last: number, through: number, limit: number, transient = false) {\n    const after = last + 1',
      },
    ],
  },
  {
    name: 'lost wake-ups are not recovered',
    faults: ['cursor-killed'],
    changes: [
      {
        folder: 'core/streams',
        from: '(conversationId, { sequence }, event) => feeds.advanced(conversationId, sequence, event))',
        to: '(conversationId, { sequence }, event) => {\n    if (sequence % 2 === 0) feeds.advanced(conversationId, sequence, event)\n  })',
      },
      {
        folder: 'core/streams',
        from: 'feeds.check().catch',
        to: 'Promise.resolve().catch',
      },
      {
        folder: 'core/streams',
        from: 'checkSome: feeds.checkSome',
        to: 'checkSome: async () => {}',
      },
    ],
  },
  {
    name: 'a history page and its `lastSequence` come from two concurrent reads',
    faults: ['answers-broken'],
    changes: [
      {
        folder: 'core/conversations',
        from: 'const { messages, changes, ...ends } = await events.historyPage({',
        to: 'const last = Promise.resolve().then(() => events.ends([conversationId], { committed: true }))\n    const { messages, changes, ...ends } = await events.historyPage({',
      },
      {
        folder: 'core/conversations',
        from: 'withChanges(messages, changes), ...ends }',
        to: 'withChanges(messages, changes), ...ends, lastSequence: (await last).get(conversationId)?.sequence ?? 0 }',
      },
    ],
  },
  {
    name: 'a message can take the operation key of its session’s terminal event',
    // Uses a fault that does not break visitors' connections. A broken connection would also end
    // the stream and hide the bug.
    faults: ['worker-stopped'],
    changes: [
      {
        folder: 'core',
        from: "keyOf('session', sessionId, type)",
        to: 'keyOf(sessionId, type)',
      },
      {
        folder: 'core/sessions',
        from: '      subscriptions.endSession(sessionId, type)\n',
        to: '',
      },
    ],
  },
  {
    name: 'idempotency works only within one process',
    faults: ['answers-broken'],
    changes: [
      {
        folder: 'core/database',
        from: "{ conversationId: 1, operationKey: 1 }, uniqueIn('operationKey')",
        to: "{ conversationId: 1, operationKey: 1 }, having('operationKey')",
      },
      {
        folder: 'core',
        from: '    const { promise, resolve, reject } = Promise.withResolvers<Appended | undefined>()\n    waiting.push',
        to: `    const { promise, resolve, reject } = Promise.withResolvers<Appended | undefined>()
    const own = ((globalThis as any).own ??= new Map()) as Map<string, Promise<Appended>>
    if (draft.operationKey !== undefined) {
      const known = own.get(draft.operationKey)
      if (known) return known.then(({ event }) => ({ event, replayed: true }))
      own.set(draft.operationKey, promise as Promise<Appended>)
      promise.catch(() => own.delete(draft.operationKey ?? ''))
    }
    waiting.push`,
      },
    ],
  },
]
