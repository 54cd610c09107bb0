import type { SourceChange } from '../support/source-copy.ts'

/** A fault of the product that only a replica set shows. */
export interface KnownSuspicion {
  name: string
  /** Name of the test in `suspicions.long.test.ts` that must find the fault. */
  test: string
  changes: SourceChange[]
}

/** Faults that the product had. The double must find each when it is put back. */
export const knownSuspicions: KnownSuspicion[] = [
  {
    name: 'index builds wait for stopped members, and end with the socket timeout',
    test: 'starts while a member is stopped and an index of a collection with documents is missing',
    changes: [
      { folder: 'core/database', from: "{ commitQuorum: 'majority' }", to: '{}' },
      {
        folder: 'core/database',
        from: "appName: 'service-migrate',",
        to: "appName: 'service-migrate',\n    socketTimeoutMS: timeoutMs,",
      },
    ],
  },
  {
    name: 'all visitors of a connection are deleted with one write',
    test: 'removes the visitors of a deleted connection in groups that end before the socket timeout',
    changes: [
      {
        folder: 'core/privacy',
        from: 'documents(visitors, { connectionId: { $in: connectionIds } }),',
        to: 'atOnce(() => visitors.deleteMany({ connectionId: { $in: connectionIds } })),',
      },
    ],
  },
  {
    name: 'leads without deliveries are read as one server has them',
    test: 'makes no deliveries of a lead that no majority has',
    changes: [{ folder: 'core/deliveries', from: 'find(due, { ...committed, limit })', to: 'find(due, { limit })' }],
  },
  {
    name: 'states of messages are written with updates that the driver does not repeat',
    test: 'sets the states of messages although the primary steps down',
    changes: [
      {
        folder: 'core/conversations',
        from: '      return sequences.map((sequence) => ({\n        updateOne: {',
        to: '      return sequences.map((sequence) => ({\n        updateMany: {',
      },
    ],
  },
  {
    name: 'temporary errors of a server end the start of a core',
    test: 'a core that starts while a server reports FailedToSatisfyReadPreference tries again',
    changes: [{ folder: 'core/mongodb', from: '64, 89, 91, 133, 134, 189, 202,', to: '89, 91, 189,' }],
  },
]
