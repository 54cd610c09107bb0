import type { FaultName } from './faults.ts'

/** A past or likely bug, as exact replacements in the source. */
export interface KnownBug {
  name: string
  /** Faults that reveal it. */
  faults: FaultName[]
  changes: { file: string; from: string; to: string }[]
}

export const knownBugs: KnownBug[] = [
  {
    name: 'a repeated ban skips sessions that are already banned',
    faults: ['hint-lost'],
    changes: [
      {
        file: 'core/visitors/session-store.ts',
        from: 'sessions.find({ ...visitor, endsAt: { $gt: at } }',
        to: "sessions.find({ ...visitor, status: 'active' }",
      },
      {
        file: 'core/log/live-cache.ts',
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
        file: 'core/database/durability.ts',
        from: 'return isSingle ? { w: 1, journal: true }',
        to: 'return isSingle ? { w: 1, journal: false }',
      },
    ],
  },
  {
    name: 'treats a broken connection as a written batch',
    faults: ['engine-killed', 'engine-cut'],
    changes: [{ file: 'core/log/event-store.ts', from: '  if (failures.length === 0) throw error\n', to: '' }],
  },
  {
    name: 'accepts results without the current claim',
    faults: ['worker-stopped'],
    changes: [
      {
        file: 'core/deliveries/delivery-results.ts',
        from: "return status === 'sending' && claim?.claimId === claimId &&",
        to: "return status === 'sending' &&",
      },
      {
        file: 'core/deliveries/delivery-settlements.ts',
        from: "const filter = { _id: deliveryId, status: 'sending' as const, 'claim.claimId': claimId }",
        to: "const filter = { _id: deliveryId, status: 'sending' as const }",
      },
    ],
  },
  {
    name: 'a replay starts one event too late',
    faults: ['answers-broken'],
    changes: [
      {
        file: 'core/log/replay-window.ts',
        from: 'async function read(conversationId: string, after: number) {',
        to: 'async function read(conversationId: string, last: number) {\n    const after = last + 1',
      },
    ],
  },
  {
    name: 'lost wake-ups are not recovered',
    faults: ['cursor-killed'],
    changes: [
      {
        file: 'core/log/stream-subscriptions.ts',
        from: '(conversationId, { sequence }) => feeds.advanced(conversationId, sequence))',
        to: '(conversationId, { sequence }) => {\n    if (sequence % 2 === 0) feeds.advanced(conversationId, sequence)\n  })',
      },
      {
        file: 'core/log/stream-subscriptions.ts',
        from: 'feeds.check().catch',
        to: 'Promise.resolve().catch',
      },
      {
        file: 'core/log/stream-subscriptions.ts',
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
        file: 'core/conversations/messages.ts',
        from: 'const { messages, changes, ...ends } = await events.historyPage({',
        to: 'const [{ messages, changes, ...ends }, last] = await Promise.all([events.historyPage({',
      },
      {
        file: 'core/conversations/messages.ts',
        from: '      limit: limit + 1,\n    })\n',
        to: '      limit: limit + 1,\n    }), events.ends([conversationId], { committed: true })])\n    ends.lastSequence = last.get(conversationId)?.sequence ?? 0\n',
      },
    ],
  },
  {
    name: 'a message can take the operation key of its session’s terminal event',
    // Faults that break visitors' connections would also end the stream and hide the bug.
    faults: ['worker-stopped'],
    changes: [
      {
        file: 'core/log/operation-keys.ts',
        from: "keyOf('session', sessionId, type)",
        to: 'keyOf(sessionId, type)',
      },
      {
        file: 'core/visitors/session-watch.ts',
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
        file: 'core/database/indexes.ts',
        from: "{ conversationId: 1, operationKey: 1 },\n    { name: 'by_operation', unique: true,",
        to: "{ conversationId: 1, operationKey: 1 },\n    { name: 'by_operation',",
      },
      {
        file: 'core/log/event-log.ts',
        from: '      const { promise, resolve, reject } = Promise.withResolvers<Appended>()\n      waiting.push',
        to: `      const { promise, resolve, reject } = Promise.withResolvers<Appended>()
      const own = ((globalThis as any).own ??= new Map()) as Map<string, Promise<Appended>>
      if (draft.operationKey !== undefined) {
        const known = own.get(draft.operationKey)
        if (known) return known.then(({ event }) => ({ event, replayed: true }))
        own.set(draft.operationKey, promise)
        promise.catch(() => own.delete(draft.operationKey ?? ''))
      }
      waiting.push`,
      },
    ],
  },
]
