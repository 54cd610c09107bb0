import type { FaultName } from './faults.ts'

/** A bug that was made once, or is easily made, as exact replacements in the source. */
export interface KnownBug {
  name: string
  /** Under which it shows. */
  faults: FaultName[]
  changes: { file: string; from: string; to: string }[]
}

export const knownBugs: KnownBug[] = [
  {
    name: 'a repeated ban misses sessions that are banned already',
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
    name: 'acknowledges before the journal has it',
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
    name: 'takes a broken connection for a batch that was written',
    faults: ['engine-killed', 'engine-cut'],
    changes: [{ file: 'core/log/event-store.ts', from: '  if (failures.length === 0) throw error\n', to: '' }],
  },
  {
    name: 'no fence on a claim',
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
    name: 'a replay begins one place too late',
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
    name: 'wake-ups are lost, and nothing catches up',
    faults: ['cursor-killed'],
    changes: [
      {
        file: 'core/log/subscriptions.ts',
        from: '(conversationId, { sequence }) => feeds.advanced(conversationId, sequence))',
        to: '(conversationId, { sequence }) => {\n    if (sequence % 2 === 0) feeds.advanced(conversationId, sequence)\n  })',
      },
      {
        file: 'core/log/subscriptions.ts',
        from: 'feeds.check().catch',
        to: 'Promise.resolve().catch',
      },
      {
        file: 'core/log/subscriptions.ts',
        from: 'checkSome: feeds.checkSome',
        to: 'checkSome: async () => {}',
      },
    ],
  },
  {
    name: 'a history page and its `lastSequence` are two questions at once',
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
    name: 'a message can have the operation key of the end of its session',
    // A fault that breaks visitors' connections would end the stream, too.
    faults: ['worker-stopped'],
    changes: [
      {
        file: 'core/log/operation-keys.ts',
        from: "keyOf('session', sessionId, type)",
        to: 'keyOf(sessionId, type)',
      },
      {
        file: 'core/visitors/session-watch.ts',
        from: '      subscriptions.sessionIsOver(sessionId, type)\n',
        to: '',
      },
    ],
  },
  {
    name: 'idempotency is each process’s own',
    faults: ['answers-broken'],
    changes: [
      {
        file: 'core/database/indexes.ts',
        from: "{ name: 'by_operation', unique: true, partialFilterExpression: { operationKey: { $exists: true } } },\n  ],\n  // What the sweep",
        to: "{ name: 'by_operation', partialFilterExpression: { operationKey: { $exists: true } } },\n  ],\n  // What the sweep",
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
