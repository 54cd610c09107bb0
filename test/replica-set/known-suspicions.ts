import type { SourceChange } from '../support/source-copy.ts'

/** A fault of the product that only a replica set or a sharded cluster shows. */
export interface KnownSuspicion {
  name: string
  /** Name of the test in `suspicions.long.test.ts` that must find the fault. */
  test: string
  changes: SourceChange[]
}

/** Faults that the product had. The double must find each when it is put back. */
export const knownSuspicions: KnownSuspicion[] = [
  {
    name: 'leases are taken without the shard key',
    test: 'leases a console session of a sharded collection',
    changes: [
      {
        folder: 'core/mongodb',
        from: 'const filter = { ...free, ...due } as Filter<D>',
        to: 'const filter = free as Filter<D>',
      },
    ],
  },
  {
    name: 'the ends of logs are grouped by the router',
    test: 'reads only the ends of logs from the shards',
    changes: [{ folder: 'core/log', from: 'if (isSharded) {', to: 'if (isSharded && conversationIds.length === 0) {' }],
  },
  {
    name: 'sharding creates the index of screenshots without uniqueness',
    test: 'keeps the index of screenshots unique if the database is sharded before the first upload',
    changes: [
      {
        folder: 'core/database',
        from: 'key: { files_id: 1, n: 1 },\n    unique: true,',
        to: 'key: { files_id: 1, n: 1 },',
      },
    ],
  },
  {
    name: 'index builds wait for stopped members, and end with the socket timeout',
    test: 'starts while a member is stopped and an index of a collection with documents is missing',
    changes: [
      { folder: 'core/database', from: "{ commitQuorum: 'majority' }", to: '{}' },
      {
        folder: 'core/database',
        from: "appName: 'service-migrate',",
        to: "appName: 'service-migrate',\n    socketTimeoutMS: settings.timeoutMs,",
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
    name: 'states of messages are written with updates that the driver does not repeat',
    test: 'sets the states of messages although the primary steps down',
    changes: [
      {
        folder: 'core/conversations',
        from: '        sequences[index]!.map((sequence) => ({\n          updateOne: {',
        to: '        sequences[index]!.map((sequence) => ({\n          updateMany: {',
      },
    ],
  },
  {
    name: 'errors of a router end the start of a core',
    test: 'a core that starts while a router reports FailedToSatisfyReadPreference tries again',
    changes: [{ folder: 'core/mongodb', from: '64, 89, 91, 133, 134, 189, 202,', to: '89, 91, 189,' }],
  },
]
