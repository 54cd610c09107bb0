import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { signAssertion } from '../../test/support/assertion.ts'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { banSession, findSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { listMessages, sendAsAgent } from '../conversations/messages.ts'
import { endOverdueTyping } from '../conversations/typing.ts'
import { createAttempt } from '../deliveries/deliveries.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { createSubscription, getSubscription, listSubscriptions } from '../deliveries/subscriptions.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import { getLead } from '../leads/leads.ts'
import { addResults, claimDue } from '../test/claims.ts'
import { codeOf, hasFailed, type TestCores, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { site } from '../test/visitor-credentials.ts'
import { acceptForms, flushAll, idsOf, placesOfTexts, plantMarks } from '../test/visitor-marks.ts'
import { createSession } from '../visitors/sessions.ts'
import { createConnection, createInstallation, findInstallation, findWorkspace } from '../workspaces/workspaces.ts'
import { deleteObject, undoDeletion } from './deletions.ts'
import type { DeletionKind } from './model.ts'
import { beginRemoval, runDueRemovals } from './removals.ts'

const cores = testCores({ count: 2 })
const desk = { subject: 'desk' }
const kinds = someOf(['workspace', 'connection', 'installation'] as const, 1)

/** Creates a workspace with visitors' data in every collection. */
async function newShop() {
  const at = await cores.newSite()
  const own = {
    ...at,
    newSession: (core = cores.core, browser = randomUUID() as string) => cores.newSession(core, browser, at),
  }
  const shop: TestCores = new Proxy({} as TestCores, {
    get: (_, property) => Reflect.get(property in own ? own : cores, property),
  })
  await acceptForms(shop)
  const planted = await plantMarks(shop, { verified: true })
  const { page } = await listSubscriptions(cores.core, { workspaceId: at.workspaceId, listed: 'subscriptions' })
  const { subscriptionId } = page[0]!.subscription
  await banSession(cores.core, (await shop.newSession()).sessionId, 'rude', undefined)
  await addSuppressions(cores.core, {
    workspaceId: at.workspaceId,
    entries: [{ kind: 'email', value: 'nobody@example.org' }],
    reason: '',
    addedBy: 'desk',
  })
  const traces = [...planted.marks, ...(await idsOf(shop, planted))]
  return { ...own, planted, subscriptionId, traces, idOf: idIn({ ...at, subscriptionId }) }
}

const idIn =
  (shop: { workspaceId: string; connectionId: string; publicSiteKey: string; subscriptionId: string }) =>
  (kind: DeletionKind) =>
    ({
      workspace: shop.workspaceId,
      connection: shop.connectionId,
      installation: shop.publicSiteKey,
      subscription: shop.subscriptionId,
    })[kind]

/** Runs every step of every deletion, and advances the clock between steps. */
async function finishDeletions(core: RunningCore = cores.core) {
  for (let round = 0; round < 60; round += 1) {
    await flushAll(cores)
    cores.advance(round % 2 === 0 ? 121 : 31)
    // In production, typing ends within seconds, long before the first step that removes data.
    await endOverdueTyping(core)
    await runDueRemovals(core)
    if ((await core.database.collections.removals.countDocuments()) === 0) return
  }
  throw new Error('the deletions did not finish')
}

const placesOf = (texts: string[]) => placesOfTexts(cores, texts)

const isOfLead = (place: string) => /^(leads|deliveries)/.test(place)

describe.each(kinds)('the deletion of a %s', (kind) => {
  it('ends its streams, refuses its visitors and removes everything that belongs to it', async () => {
    const shop = await newShop()
    const other = await newShop()
    const { session } = shop.planted
    const streams = [await cores.openStream(session, cores.core), await cores.openStream(session, cores.other)]
    const foreign = await cores.openStream(other.planted.session, cores.other)
    const before = await placesOf(other.traces)
    await deleteObject(cores.core, kind, shop.idOf(kind), undefined)
    for (const stream of streams) await until('the end of the stream', () => stream.ended)
    for (const core of cores.cores) {
      const request = {
        publicSiteKey: shop.publicSiteKey,
        origin: site,
        clientInstanceId: 'x',
        idempotencyKey: randomUUID(),
      }
      expect(await codeOf(createSession(core, request))).toBe('InstallationNotFound')
      expect(await codeOf(cores.send(session, 'late', { core }))).toBe('OriginNotAllowed')
    }
    expect(await codeOf(findInstallation(cores.core, shop.publicSiteKey, undefined))).toBe('NotFound')
    await finishDeletions()
    const left = await placesOf([...shop.traces, shop.idOf(kind)])
    expect(kind === 'workspace' ? left : left.filter((place) => !isOfLead(place))).toEqual([])
    expect(foreign.ended).toBe(false)
    expect(await placesOf(other.traces)).toEqual(
      expect.arrayContaining(before.filter((place) => !/^(typing|wakeups)/.test(place))),
    )
    foreign.close()
  })

  itLong('is completed even if its process dies between two writes and the operator repeats the call', async () => {
    const left: unknown[] = []
    await cores.untilOneSurvives(
      async (mortal, writes) => {
        const shop = await newShop()
        const died = await hasFailed(
          deleteObject(mortal, kind, shop.idOf(kind), undefined).then(() => finishDeletions(mortal)),
        )
        // The operator repeats the call. The object may be gone already.
        await deleteObject(cores.core, kind, shop.idOf(kind), undefined).catch(() => {})
        expect(await codeOf(cores.send(shop.planted.session, 'late'))).not.toBe('ok')
        await finishDeletions()
        const places = (await placesOf(shop.traces)).filter((place) => kind === 'workspace' || !isOfLead(place))
        if (places.length > 0) left.push([writes, places])
        return died
      },
      { every: 167, everyInLong: 7 },
    )
    expect(left).toEqual([])
  })
})

describe('a deletion', () => {
  it('refuses agents on every core as soon as a conversation is hidden', async () => {
    const { planted, workspaceId } = await newShop()
    const { conversationId } = planted.session
    const write = (core: RunningCore) =>
      codeOf(
        sendAsAgent(core, {
          conversationId,
          clientOperationId: randomUUID(),
          body: 'Hello',
          agent: { displayName: 'Ada' },
        }),
      )
    expect([await write(cores.core), await write(cores.other)]).toEqual(['ok', 'ok'])
    await beginRemoval(cores.core, { workspaceId, kind: 'conversations', ids: [conversationId], isDeletion: true })
    // The timeout is shorter than the maximum age of cached facts, so a lost wake-up fails the test.
    for (const core of cores.cores) await expect.poll(() => write(core), { timeout: 20_000 }).toBe('NotFound')
  })

  itLong('by operators takes effect once, and never in another workspace', async () => {
    const shop = await newShop()
    const foreign = await clientsOf(cores.core, cores.workspaceId)
    for (const attempt of [
      () => foreign.workspaces.deleteWorkspace({ workspaceId: shop.workspaceId }),
      () => foreign.workspaces.deleteConnection({ connectionId: shop.connectionId }),
      () => foreign.workspaces.deleteInstallation({ siteKey: shop.publicSiteKey }),
      () => foreign.leads.deleteSubscription({ subscriptionId: shop.subscriptionId }),
    ])
      expect(
        await attempt().then(
          () => 'ok',
          ({ rawMessage }) => rawMessage,
        ),
      ).toMatch(/NotFound/)
    const own = await Promise.all(cores.cores.map((core) => clientsOf(core, shop.workspaceId)))
    const key = { idempotencyKey: randomUUID() }
    await own[0]!.leads.deleteSubscription({ subscriptionId: shop.subscriptionId, ...key })
    await own[1]!.leads.deleteSubscription({ subscriptionId: shop.subscriptionId, ...key })
    expect((await own[1]!.leads.listSubscriptions({})).subscriptions).toEqual([])
    await Promise.all(own.map(({ workspaces }) => workspaces.deleteInstallation({ siteKey: shop.publicSiteKey })))
    await own[0]!.workspaces.deleteConnection({ connectionId: shop.connectionId })
    const { workspaceId } = shop
    const codeOf = (named?: string) =>
      own[0]!.workspaces.deleteWorkspace({ workspaceId: named }).then(
        () => 'ok',
        ({ rawMessage }) => rawMessage,
      )
    expect(await codeOf(undefined)).toMatch(/^ValidationFailed/)
    expect(await codeOf('')).toMatch(/^ValidationFailed/)
    expect((await own[0]!.workspaces.getWorkspace({})).workspace).toMatchObject({ workspaceId })
    await own[1]!.workspaces.deleteWorkspace({ workspaceId })
    expect(await codeOf(workspaceId)).toBe('ok')
    await finishDeletions()
    expect(await placesOf([...shop.traces, shop.workspaceId])).toEqual([])
    expect(await codeOf(workspaceId)).toBe('NotFound')
  })

  itLong('of a subscription records the result of a running attempt and sends no other delivery', async () => {
    const shop = await newShop()
    const { core } = cores
    const claim = () => claimDue(core, { limit: 1 })
    // Other destinations of this database are not part of the test.
    await core.database.collections.deliveries.deleteMany({ workspaceId: { $ne: shop.workspaceId } })
    const [under] = await claim()
    expect(under).toBeDefined()
    await deleteObject(core, 'subscription', shop.subscriptionId, undefined)
    expect(await claim()).toEqual([])
    const lead = { workspaceId: shop.workspaceId, source: 'crm', fields: { email: 'x' } }
    const leadId = await captureLead(core, lead, undefined)
    const again = { leadId, subscriptionId: shop.subscriptionId, idempotencyKey: randomUUID() }
    expect(await codeOf(createAttempt(core, again, desk))).toBe('SubscriptionNotFound')
    const { deliveryId, attemptId, claimId } = under!
    const result = { deliveryId, attemptId, claimId, durationMs: 1, facts: { status: 200 } }
    expect(await addResults(core, [result])).toEqual([true])
    await finishDeletions()
    const places = await placesOf([shop.subscriptionId])
    // The feed keeps what happened to leads. Its follower may have announced the result before.
    expect(places.filter((place) => !place.startsWith('feedEntries'))).toEqual([])
    expect(await getLead(core, leadId, undefined)).toBeDefined()
  })

  itLong('also removes data that other calls add while it begins', async () => {
    const shop = await newShop()
    const { core, other } = cores
    const mark = randomUUID()
    const adding = Promise.allSettled([
      createConnection(other, shop.workspaceId, mark, undefined),
      createInstallation(other, shop.connectionId, { origins: [site], appearance: { title: mark } }, undefined),
      captureLead(other, { workspaceId: shop.workspaceId, source: 'crm', fields: { note: mark } }, undefined),
      cores.newSession(other, mark, shop),
      cores.send(shop.planted.session, mark, { core: other }),
      sendAsAgent(other, {
        conversationId: shop.planted.session.conversationId,
        clientOperationId: randomUUID(),
        body: mark,
      }),
      createSubscription(
        other,
        {
          workspaceId: shop.workspaceId,
          destinationUrl: `https://93.184.216.34/${mark}`,
          mappedFields: [],
          automatic: true,
        },
        desk,
      ),
    ])
    await deleteObject(core, 'workspace', shop.workspaceId, undefined)
    await adding
    await finishDeletions()
    expect(await placesOf([mark, shop.workspaceId])).toEqual([])
  })

  itLong('of an installation keeps conversations that continued on another installation', async () => {
    const shop = await newShop()
    const { core } = cores
    const second = await createInstallation(core, shop.connectionId, { origins: [site] }, undefined)
    const { publicSiteKey } = second.installation
    const sub = randomUUID()
    const first = await cores.identify(await cores.newSession(core, randomUUID(), shop), shop.sign({ sub }))
    await cores.send(first, 'on the first site')
    const elsewhere = await cores.newSession(core, randomUUID(), { ...shop, publicSiteKey })
    const { kid, secret } = second.identitySecret
    const assertion = await signAssertion(
      { siteKey: publicSiteKey, kid, secret, now: cores.now() },
      { claims: { sub } },
    )
    const continued = await cores.identify(elsewhere, assertion)
    expect(continued.conversationId).toBe(first.conversationId)
    await deleteObject(core, 'installation', shop.publicSiteKey, undefined)
    await finishDeletions()
    expect(await findSession(cores.core, continued.sessionId)).toBeDefined()
    expect((await listMessages(core, first.conversationId, {})).messages.map(({ message }) => message?.body)).toEqual([
      'on the first site',
    ])
    await expect(findSession(core, first.sessionId)).rejects.toThrow('NotFound')
  })
})

describe('the undo of the deletion of a workspace', () => {
  /** The objects of a workspace, as they are stored. */
  async function objectsOf(workspaceId: string) {
    const { workspaces, connections, installations, leadSubscriptions } = cores.core.database.collections
    // Sweeps and followers go on meanwhile and write their own marks.
    const found = await Promise.all([
      workspaces.find({ _id: workspaceId }, { projection: { sweepAt: 0, sweepAfter: 0, sweepToken: 0 } }).toArray(),
      connections.find({ workspaceId }, { projection: { statusVersion: 0 } }).toArray(),
      installations.find({ workspaceId }).toArray(),
      leadSubscriptions.find({ workspaceId }, { projection: { followedTo: 0 } }).toArray(),
    ])
    return found.flat()
  }

  const codeOfRestore = async (workspaceId: string, core = cores.core, of: string | undefined = undefined) => {
    const { workspaces } = await clientsOf(core, of)
    return workspaces.restoreWorkspace({ workspaceId }).then(
      () => 'ok',
      ({ rawMessage }) => rawMessage,
    )
  }

  itLong('shows everything as before until the removal begins, and lets it be deleted again', async () => {
    const shop = await newShop()
    const { workspaceId } = shop
    const hook = await createSubscription(
      cores.core,
      {
        workspaceId,
        destinationUrl: 'https://93.184.216.34/hook',
        mappedFields: [],
        automatic: false,
        resource: 'hook',
        policy: { types: ['subscription.disabled'], sources: [], installations: [] },
      },
      desk,
    )
    await deleteObject(cores.core, 'subscription', shop.subscriptionId, undefined)
    const before = await objectsOf(workspaceId)
    const places = await placesOf(shop.traces)
    await deleteObject(cores.core, 'workspace', workspaceId, undefined)
    expect(await codeOfRestore(workspaceId, cores.core, 'ws_other')).toBe('NotFound')
    expect(await codeOf(findWorkspace(cores.core, workspaceId))).toBe('NotFound')
    cores.advance(60)
    expect(await codeOfRestore(workspaceId, cores.other)).toBe('ok')
    expect(await codeOfRestore(workspaceId)).toBe('ok')
    expect(await objectsOf(workspaceId)).toEqual(before)
    for (const core of cores.cores) {
      expect((await getSubscription(core, hook.subscriptionId, desk)).subscription.status).toBe('enabled')
      expect(await codeOf(getSubscription(core, shop.subscriptionId, desk))).toBe('SubscriptionNotFound')
      expect(await codeOf(shop.newSession(core))).toBe('ok')
    }
    await finishDeletions()
    expect(await codeOf(findWorkspace(cores.core, workspaceId))).toBe('ok')
    const isLasting = (place: string) => !/^(typing|wakeups|deliveries|leadSubscriptions)/.test(place)
    expect(await placesOf(shop.traces)).toEqual(expect.arrayContaining(places.filter(isLasting)))
    await deleteObject(cores.core, 'workspace', workspaceId, undefined)
    await finishDeletions()
    expect(await placesOf([...shop.traces, workspaceId])).toEqual([])
  })

  itLong('is refused when the removal has begun, and leaves a deletion that follows it alone', async () => {
    const { workspaceId } = await newShop()
    await deleteObject(cores.core, 'workspace', workspaceId, undefined)
    expect(await codeOfRestore(workspaceId)).toBe('ok')
    await deleteObject(cores.core, 'workspace', workspaceId, undefined)
    // The undo of the first deletion may take the first rounds.
    const { removals } = cores.core.database.collections
    await until('the removal to begin', async () => {
      cores.advance(121)
      await runDueRemovals(cores.core)
      return removals.findOne({ workspaceId, stage: { $in: ['removing', 'removed'] } })
    })
    expect(await codeOf(findWorkspace(cores.core, workspaceId))).toBe('NotFound')
    expect(await codeOfRestore(workspaceId)).toBe('NotFound')
    await finishDeletions()
    expect(await objectsOf(workspaceId)).toEqual([])
  })

  itLong('is completed by another core if its process dies', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const { workspaceId, publicSiteKey } = await newShop()
      const before = await objectsOf(workspaceId)
      await deleteObject(cores.core, 'workspace', workspaceId, undefined)
      const died = await hasFailed(undoDeletion(mortal, workspaceId, undefined))
      const { removals } = cores.core.database.collections
      if (died && (await removals.findOne({ workspaceId }))?.stage !== 'restoring') return died
      await finishDeletions()
      expect(await objectsOf(workspaceId)).toEqual(before)
      expect(await codeOf(findInstallation(cores.core, publicSiteKey, undefined))).toBe('ok')
      return died
    })
  })
})
