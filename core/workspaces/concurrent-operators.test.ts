import { createHash } from 'node:crypto'
import fc, { type Scheduler } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { itLong, runs } from '../../test/support/is-long.ts'
import { createBus } from '../bus.ts'
import type { Core } from '../core.ts'
import { createAttempt } from '../deliveries/deliveries.ts'
import { resolverOf } from '../deliveries/destination-check.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import {
  createSubscription,
  getSubscription,
  rotateSecret,
  showSecret,
  updateSubscription,
} from '../deliveries/subscriptions.ts'
import type { IdPrefix } from '../ids.ts'
import { bareCore } from '../test/core-with.ts'
import { testCores } from '../test/cores.ts'
import { scheduledDatabase } from '../test/scheduled-database.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { findInstallations, rotateIdentitySecret, setConnectionStatus, updateInstallation } from './workspaces.ts'

const cores = testCores({ started: false })

const plannedIds = (prefix: IdPrefix, operation: string) =>
  `${prefix}_${createHash('sha256')
    .update(prefix + operation)
    .digest('hex')
    .slice(0, 26)}`
const wakeups = {
  changing: <T>(_ids: string[], write: () => Promise<T>) => write(),
  stateChanged: async () => {},
}

function workspacesOn(scheduler: Scheduler) {
  const { secretBox } = cores.core
  const { collections: db } = scheduledDatabase(scheduler, cores.core.database)
  const core = bareCore({ bus: createBus(), db, secretBox, plannedIds, now: cores.now })
  wakeupsOf.set(core, wakeups as Wakeups)
  return {
    updateInstallation: (...change: Change<typeof updateInstallation>) => updateInstallation(core, ...change),
    rotateIdentitySecret: (...change: Change<typeof rotateIdentitySecret>) => rotateIdentitySecret(core, ...change),
    setConnectionStatus: (...change: Change<typeof setConnectionStatus>) => setConnectionStatus(core, ...change),
  }
}

type Change<F> = F extends (core: Core, ...change: infer A) => unknown ? A : never

/** Returns a core whose database calls run in the order of the scheduler. It reads no wake-ups. */
function coreOn(scheduler: Scheduler) {
  const { collections: db } = scheduledDatabase(scheduler, cores.core.database)
  const core = bareCore({ ...cores.core, db, plannedIds })
  resolverOf.set(core, { resolve: async () => [] })
  wakeupsOf.set(core, { ...wakeupsOf(cores.core), ...wakeups, hint: async () => {} })
  return core
}

const inEveryOrder = (run: (scheduler: Scheduler) => Promise<void>, parameters = runs(80)) =>
  fc.assert(fc.asyncProperty(fc.scheduler(), run), parameters)

const installationOf = async (siteKey: string) => (await findInstallations(cores.core, [siteKey]))[0]!

describe('concurrent writes of operators, in random order', () => {
  it('to different fields of an installation are all stored', async () => {
    await inEveryOrder(async (scheduler) => {
      const { publicSiteKey: siteKey } = await cores.newSite()
      const { updateInstallation } = workspacesOn(scheduler)
      const changes = [
        { capabilities: { screenshots: false } },
        { capabilities: { typing: false }, appearance: { title: 'One' } },
        { appearance: { greeting: 'Two' }, forms: { preChat: [] } },
        { forms: { offline: [] }, origins: ['https://other.example'] },
      ]
      await scheduler.waitFor(Promise.all(changes.map((change) => updateInstallation(siteKey, change, undefined))))
      expect(await installationOf(siteKey)).toMatchObject({
        capabilities: { screenshots: false, typing: false, navigation: true },
        appearance: { title: 'One', greeting: 'Two', position: 'right' },
        forms: { preChat: [], offline: [] },
        origins: ['https://other.example'],
      })
    })
  })

  it.each([86_400, 0])(
    'that rotate an identity secret (overlap %i s) keep every returned secret valid',
    async (overlapSeconds) => {
      await inEveryOrder(async (scheduler) => {
        const { publicSiteKey: siteKey } = await cores.newSite()
        const [inUse] = (await installationOf(siteKey)).identitySecrets
        const { rotateIdentitySecret, updateInstallation } = workspacesOn(scheduler)
        const rotations = ['a', 'b', 'a'].map((name) =>
          rotateIdentitySecret(siteKey, undefined, { operation: `${siteKey} ${name}`, overlapSeconds }),
        )
        const update = updateInstallation(siteKey, { enabled: false }, undefined)
        const [returned] = await scheduler.waitFor(Promise.all([Promise.all(rotations), update]))
        const installation = await installationOf(siteKey)
        const live = installation.identitySecrets.map(({ kid, sealed }) => ({
          kid,
          secret: cores.core.secretBox.open(sealed),
        }))
        expect(live).toEqual(expect.arrayContaining(returned))
        expect(returned[0]).toEqual(returned[2])
        // Without an overlap, the second rotation may drop the secret that the first one replaced.
        if (overlapSeconds > 0) {
          expect(live).toHaveLength(3)
          expect(live.map(({ kid }) => kid)).toContain(inUse!.kid)
        }
        expect(installation.enabled).toBe(false)
      })
    },
  )

  it("that rotate a subscription's secret leave every returned secret in use for signatures", async () => {
    await inEveryOrder(async (scheduler) => {
      const { core, subscription, returned } = await rotatedAtOnce(scheduler, 86_400)
      for (const answer of returned) expect(showSecret(core, subscription, answer!)).toMatch(/^whsec_/)
    })
  })

  it("that rotate a subscription's secret without an overlap each take effect once", async () => {
    await inEveryOrder(async (scheduler) => {
      const { core, subscription } = await rotatedAtOnce(scheduler, 0)
      expect(showSecret(core, subscription, subscription.secrets[0]!.secretId)).toMatch(/^whsec_/)
    })
  })

  itLong(
    'that update, enable and disable a subscription are all stored, and the delivery is held only if the final status is disabled',
    async () => {
      await inEveryOrder(async (scheduler) => {
        const core = coreOn(scheduler)
        const { subscriptionId, by } = await newSubscription()
        const leadId = await captureLead(
          cores.core,
          { workspaceId: by.workspaceId, source: 'test', fields: {} },
          undefined,
        )
        await createAttempt(cores.core, { leadId, subscriptionId, idempotencyKey: subscriptionId }, by)
        await scheduler.waitFor(
          Promise.all([
            updateSubscription(core, subscriptionId, { mappedFields: ['name'] }, by),
            updateSubscription(core, subscriptionId, { status: 'disabled', automatic: true }, by),
            updateSubscription(core, subscriptionId, { status: 'enabled' }, by),
            updateSubscription(core, subscriptionId, { destinationUrl: 'https://b.example/', status: 'disabled' }, by),
          ]),
        )
        const { subscription, heldDeliveries } = await getSubscription(cores.core, subscriptionId, by)
        expect(subscription).toMatchObject({
          mappedFields: ['name'],
          automatic: true,
          destination: { origin: 'https://b.example' },
        })
        expect(heldDeliveries).toBe(subscription.status === 'disabled' ? 1 : 0)
      })
    },
  )
})

async function newSubscription() {
  const { workspaceId } = await cores.newSite()
  const by = { subject: 'desk', workspaceId }
  // An IP address, so that no name is resolved.
  const settings = { workspaceId, destinationUrl: 'https://93.184.216.34/', mappedFields: [], automatic: false }
  const { subscriptionId } = await createSubscription(cores.core, settings, by)
  return { subscriptionId, by }
}

/** Runs two rotations concurrently. One of them is sent twice with the same key. */
async function rotatedAtOnce(scheduler: Scheduler, overlapSeconds: number) {
  const core = coreOn(scheduler)
  const { subscriptionId, by } = await newSubscription()
  const rotations = ['a', 'b', 'a'].map((name) =>
    rotateSecret(core, subscriptionId, overlapSeconds, by, `${subscriptionId} ${name}`),
  )
  const returned = (await scheduler.waitFor(Promise.all(rotations))).map(({ secretId }) => secretId)
  const { subscription } = await getSubscription(cores.core, subscriptionId, by)
  expect(returned[0]).toBe(returned[2])
  expect(subscription.secrets.filter(({ expiresAt }) => expiresAt === undefined)).toHaveLength(1)
  expect(subscription.audit.filter(({ action }) => action === 'secret_rotated')).toHaveLength(2)
  return { core, subscription, returned }
}
