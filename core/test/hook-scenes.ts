import { createClient } from '@connectrpc/connect'
import { expect } from 'vitest'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { sendAsVisitor } from '../conversations/messages.ts'
import { redactMessage } from '../deliveries/redactions.ts'
import { accessOf } from '../transport/caller.ts'
import { claimDue, recordResults } from './claims.ts'
import type { TestCores, TestVisitor } from './cores.ts'
import { flushFeed } from './feed.ts'
import { transportTo } from './transports.ts'
import { placesOfTexts } from './visitor-marks.ts'

export const destinationUrl = 'https://1.1.1.1/hooks'
const managing = ['subscriptions:read', 'subscriptions:write', 'leads:read', 'leads:deliver', 'leads:write']

async function transport(core: RunningCore, scopes: string[], workspaceId?: string) {
  const token = await accessOf(core).issue({ subject: 'ada', scopes, ...(workspaceId ? { workspaceId } : {}) })
  return createAuthorizedTransport(transportTo(core), token)
}

/** Returns the calls of a worker on this core. */
export const workerOn = async (core: RunningCore) =>
  createClient(LeadService, await transport(core, ['deliveries:work']))

let scenes = 0

/** A site whose visitors' messages go to a hook, a worker, and a visitor with a secret to say. */
export async function newHookScene(cores: TestCores) {
  const site = await cores.newSite()
  const { workspaceId } = site
  const operator = await transport(cores.core, [...managing, 'messages:read'], workspaceId)
  const hooks = createClient(HookService, operator)
  const leads = createClient(LeadService, operator)
  const { hookId } = await hooks.createHook({ destinationUrl, eventTypes: ['message.visitor'] })
  const secret = `slip${++scenes}ofthetongue`
  const scene = {
    workspaceId,
    hooks,
    leads,
    hookId,
    secret,
    visitor: await cores.newVisitor(site),
    /** Returns the next delivery of the hook that a worker gets. */
    claim: (destination = hookId) =>
      until('a delivery', async () => {
        await Promise.all(cores.cores.map((core) => flushFeed(core)))
        return (await claimDue(cores.core)).find((each) => each.destination === destination)
      }),
    async finish({ deliveryId, attemptId, claimId }: ClaimedDelivery, status: number, text?: string) {
      const outcome = { case: 'response' as const, value: { status, ...(text !== undefined && { text }) } }
      expect(await recordResults(cores.core, [{ deliveryId, attemptId, claimId, outcome }])).toEqual([true])
    },
    say: async (core: RunningCore = cores.core) => {
      const { credentials } = scene.visitor
      const message = { credentials, clientOperationId: 'slip', body: secret, contentType: 'text' as const }
      return (await sendAsVisitor(core, message)).event.sequence
    },
    withdraw: (sequence: number, core: RunningCore = cores.other) => withdraw(core, scene.visitor, sequence),
    /** Everything that is stored or shown of the text. */
    async places() {
      const { attempts } = await scene.latest().then(({ deliveryId }) => leads.listDeliveryAttempts({ deliveryId }))
      const stored = await placesOfTexts(cores, [secret])
      // Wake-ups are removed after half a minute. A search entry that was written late is removed by the
      // follower of the logs, 90 s behind.
      const lasting = stored.filter((place) => !/^(wakeups|searchEntries)/.test(place))
      return [...lasting, ...attempts.flatMap(({ responseText }) => (responseText.includes(secret) ? 'attempts' : []))]
    },
    async latest() {
      const { deliveries } = await leads.listDeliveries({ subscriptionId: hookId })
      return deliveries[0]!
    },
  }
  return scene
}

const withdraw = (core: RunningCore, { conversationId }: TestVisitor, sequence: number) =>
  redactMessage(core, { conversationId, sequence }, { workspaceId: undefined, subject: 'test', anyAuthor: true })

export const bodyOf = ({ body }: ClaimedDelivery) => JSON.parse(Buffer.from(body).toString())

export type HookScene = Awaited<ReturnType<typeof newHookScene>>
