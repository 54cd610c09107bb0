import { ConnectError, createClient } from '@connectrpc/connect'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { DestinationBlockedError } from '../../platform/addresses/resolve.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { type CoreConfig, readCoreConfig } from '../config.ts'
import { createCore, type RunningCore } from '../context.ts'
import type { Collections } from '../database/collections.ts'
import type { Database } from '../database/database.ts'
import { renewClaims } from '../deliveries/claims.ts'
import { resolverOf } from '../deliveries/destination-check.ts'
import { parseSecretKeys } from '../keys/keyring.ts'
import { accessOf } from '../transport/caller.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'
import { claimDue, recordResults } from './claims.ts'
import { openStream } from './delivery-stream.ts'
import { openTestDatabase } from './open-test-database.ts'
import { mortalDatabase } from './scheduled-database.ts'
import { transportTo } from './transports.ts'

export const operatorScopes = [
  'leads:read',
  'leads:write',
  'leads:deliver',
  'subscriptions:read',
  'subscriptions:write',
]

interface DeliveriesOptions {
  settings?: Partial<CoreConfig>
  /** Whether the cores follow wake-ups and run their jobs. Default: false. */
  started?: boolean
  count?: number
  /** Whether all deliveries are deleted before each test. Default: true. */
  clears?: boolean
}

/**
 * Opens cores over one database with a fake clock and random source. Tests call them through Connect.
 * Call this function at the top level of a test file.
 */
export function testDeliveries({ settings = {}, started = false, count = 2, clears = true }: DeliveriesOptions = {}) {
  const { uri, name } = testDatabase()
  const cores: RunningCore[] = []
  let skew = 0
  let calls = 0
  const chance = { value: 0 }
  const now = () => Date.now() + skew

  beforeAll(() => open())
  if (clears) beforeEach(() => clear())
  const streams: { leave(): void }[] = []
  afterEach(() => {
    for (const stream of streams.splice(0)) stream.leave()
  })
  afterAll(async () => {
    for (const core of cores) await core.stop()
  })

  function openCore(database: Database, random = () => chance.value) {
    const core = createCore({
      config: { ...readCoreConfig({}), ...settings },
      secretKeys: parseSecretKeys(`k1:${Buffer.alloc(32, 7).toString('base64')}`),
      database,
      logger: pino({ level: 'silent' }),
      now,
      random,
    })
    resolverOf.set(core, {
      async resolve(hostname) {
        if (hostname.endsWith('.internal.example')) throw new DestinationBlockedError()
        return []
      },
    })
    return core
  }

  async function open() {
    for (let index = 0; index < count; index += 1) {
      const core = openCore(await openTestDatabase({ uri, name }))
      if (started) core.start()
      cores.push(core)
    }
    return cores
  }

  const clear = () => cores[0]!.database.collections.deliveries.deleteMany({})

  async function authorized(core: RunningCore, scopes: string[], workspaceId?: string, subject = 'ada') {
    const token = await accessOf(core).issue({ subject, scopes, ...(workspaceId === undefined ? {} : { workspaceId }) })
    return createAuthorizedTransport(transportTo(core), token)
  }
  const client = async (...caller: Parameters<typeof authorized>) =>
    createClient(LeadService, await authorized(...caller))

  return {
    uri,
    name,
    now,
    chance,
    cores,
    client,
    /** Returns a client that manages hooks. */
    hooks: async (...caller: Parameters<typeof authorized>) => createClient(HookService, await authorized(...caller)),
    advance(ms: number) {
      skew += ms
    },

    /** Opens further cores. */
    open,

    /** Deletes all deliveries. */
    clear,

    /** Creates a workspace with one lead and one subscription, and an operator client. */
    async newScene(more: { mappedFields?: string[]; automatic?: boolean; fields?: Record<string, string> } = {}) {
      const [core] = cores
      if (!core) throw new Error('open first')
      const { workspaceId } = await createWorkspace(core, 'Shop')
      const operator = await client(core, operatorScopes, workspaceId)
      const { subscriptionId, secret } = await operator.createSubscription({
        destinationUrl: 'https://crm.example/leads',
        mappedFields: more.mappedFields ?? ['name'],
        automatic: more.automatic ?? false,
      })
      const { leadId } = await operator.captureLead({ source: 'test', fields: more.fields ?? { name: 'Mia' } })
      const scene = {
        workspaceId,
        operator,
        subscriptionId,
        secret,
        leadId,
        async send(idempotencyKey = `key-${++calls}`, lead = leadId) {
          const { attempt } = await operator.createDeliveryAttempt({ leadId: lead, subscriptionId, idempotencyKey })
          if (!attempt) throw new Error('no attempt')
          return attempt
        },
        /** Sends one delivery, and stores it so often that there are `count`. */
        async sendMany(count: number) {
          const { deliveryId, attemptId } = await scene.send()
          const { deliveries } = core.database.collections
          const { _id, ...one } = (await deliveries.findOne({ _id: deliveryId }))!
          const copies = Array.from({ length: count - 1 }, (_, index) => ({
            ...one,
            _id: `${_id}${index}`,
            operations: [{ key: `${_id} ${index}`, inputHash: '', attemptId }],
          }))
          if (copies.length > 0) await deliveries.insertMany(copies)
        },
        attempts: async (deliveryId: string) => (await operator.listDeliveryAttempts({ deliveryId })).attempts,
        subscription: async () => (await operator.getSubscription({ subscriptionId })).subscription!,
      }
      return scene
    },

    async worker(core = cores[0]!, workerId = 'worker') {
      const claim = (more: Parameters<typeof claimDue>[1] = {}) => claimDue(core, { workerId, ...more })
      const record = (results: Parameters<typeof recordResults>[1]) => recordResults(core, results)
      const answer = async (
        { deliveryId, attemptId, claimId }: ClaimedDelivery,
        status: number,
        retryAfterMs?: number,
      ) => {
        const value = { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs: BigInt(retryAfterMs) }) }
        const outcome = { case: 'response' as const, value }
        return (await record([{ deliveryId, attemptId, claimId, durationMs: 12, outcome }]))[0]
      }
      return {
        claim,
        record,
        renew: (claims: Parameters<typeof renewClaims>[1]) => renewClaims(core, claims),
        answer,
        /**
         * Records a result with this HTTP status for each delivery, in one call. Returns how many
         * results were recorded.
         */
        async answerAll(claimed: ClaimedDelivery[], status: number) {
          const outcome = { case: 'response' as const, value: { status } }
          const results = claimed.map(({ deliveryId, attemptId, claimId }) => ({
            ...{ deliveryId, attemptId, claimId },
            outcome,
          }))
          return (await record(results)).filter(Boolean).length
        },
        /**
         * Claims all due deliveries and records a result with this HTTP status for each. Returns
         * the number of deliveries.
         */
        async drain(status = 200) {
          const claimed = await claim()
          for (const delivery of claimed) await answer(delivery, status)
          return claimed.length
        },
      }
    },

    /** Opens the stream of a worker and waits until the core has accepted it. */
    async stream({ core = cores[0]!, ...room }: { core?: RunningCore } & Parameters<typeof openStream>[1] = {}) {
      const stream = await openStream(await client(core, ['deliveries:work']), room)
      streams.push(stream)
      return stream
    },

    /** Returns a core that reports each database call before it is made. If `onCall` throws, the call fails. */
    watchedCore(onCall: (collection: string, method: string) => void): RunningCore {
      const { database } = cores[0]!
      const collections = Object.entries(database.collections).map(([collectionName, collection]) => [
        collectionName,
        new Proxy(collection, {
          get(target, property) {
            const value = Reflect.get(target, property)
            if (typeof value !== 'function') return value
            return (...call: unknown[]) => {
              try {
                onCall(collectionName, String(property))
              } catch (error) {
                return Promise.reject(error)
              }
              return value.apply(target, call)
            }
          },
        }),
      ])
      return openCore({
        ...database,
        collections: Object.fromEntries(collections) as Collections,
        close: async () => {},
      })
    },

    /** Returns a core that dies after this number of writes: later writes fail. */
    mortalCore: (writes: number): RunningCore => openCore(mortalDatabase(cores[0]!.database, writes)),
  }
}

export type TestDeliveries = ReturnType<typeof testDeliveries>

/** Resolves to the details of the call's error. */
const errorInfoOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => ConnectError.from(error).findDetails(ErrorInfoSchema)[0],
  )

/** Resolves to the error code of the call, or to undefined if the call succeeds. */
export const codeOf = async (call: Promise<unknown>) => (await errorInfoOf(call))?.code

/** Resolves to the path and rule of each issue that the call's error names. */
export const issuesOf = async (call: Promise<unknown>) =>
  (await errorInfoOf(call))?.issues.map(({ path, rule }) => `${path} ${rule}`) ?? []
