import { describe, expect, it } from 'vitest'
import { SubscriptionPurpose } from '#proto/lead/v1/subscription_pb.js'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'

const test = testDeliveries({ settings: { EVENT_HOOKS_MAX: 4, LEAD_SUBSCRIPTIONS_MAX: 3 } })

const destinationUrl = 'https://crm.example/in'
const hook = { destinationUrl, eventTypes: ['subscription.disabled'] }
const full = ['/destinationUrl maxItems']

async function newWorkspace() {
  const { workspaceId } = await createWorkspace(test.cores[0]!, 'Shop')
  const scopes = ['subscriptions:read', 'subscriptions:write']
  const [leads, others] = await Promise.all(test.cores.map((core) => test.client(core, scopes, workspaceId)))
  const [hooks, otherHooks] = await Promise.all(test.cores.map((core) => test.hooks(core, scopes, workspaceId)))
  return { leads: leads!, others: others!, hooks: hooks!, otherHooks: otherHooks! }
}

describe.each(['hooks', 'subscriptions'] as const)('the limit of %s', (kind) => {
  const max = kind === 'hooks' ? 4 : 3

  async function newList() {
    const { leads, others, hooks, otherHooks } = await newWorkspace()
    if (kind === 'hooks') {
      const { listHooks, deleteHook } = hooks
      return {
        create: (at: number, key?: string) =>
          (at % 2 ? hooks : otherHooks).createHook({ ...hook, idempotencyKey: key }).then(({ hookId }) => hookId),
        page: async (query: { limit?: number; pageToken?: string }) => {
          const { hooks: found, nextPageToken } = await listHooks(query)
          return { ids: found.map(({ hookId }) => hookId), nextPageToken }
        },
        remove: (hookId: string) => deleteHook({ hookId }),
      }
    }
    return {
      create: (at: number, key?: string) =>
        (at % 2 ? leads : others)
          .createSubscription({ destinationUrl, idempotencyKey: key })
          .then(({ subscriptionId }) => subscriptionId),
      page: async (query: { limit?: number; pageToken?: string }) => {
        const { subscriptions, nextPageToken } = await leads.listSubscriptions(query)
        return { ids: subscriptions.map(({ subscriptionId }) => subscriptionId), nextPageToken }
      },
      remove: (subscriptionId: string) => leads.deleteSubscription({ subscriptionId }),
    }
  }

  it('holds for parallel calls on two cores', async () => {
    const list = await newList()
    const results = await Promise.allSettled(Array.from({ length: 12 }, (_, index) => list.create(index)))
    const created = results.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    const refused = results.flatMap((each) =>
      each.status === 'rejected' ? [issuesOf(Promise.reject(each.reason))] : [],
    )
    expect([created.length, await Promise.all(refused)]).toEqual([max, Array.from({ length: 12 - max }, () => full)])
    expect((await list.page({})).ids.toSorted()).toEqual(created.toSorted())
  })

  it('lets a repeated call return what the first one created, and has room after a deletion', async () => {
    const list = await newList()
    const first = await list.create(0, 'once')
    for (let index = 1; index < max; index++) await list.create(index)
    expect(await list.create(0, 'once')).toBe(first)
    await expect(list.create(1)).rejects.toThrow('ValidationFailed')
    await list.remove(first)
    await list.create(0)
    await expect(list.create(1)).rejects.toThrow('ValidationFailed')
  })

  it('is read in pages, newest first', async () => {
    const list = await newList()
    const created: string[] = []
    for (let index = 0; index < max; index++) created.unshift(await list.create(index))
    const read: string[] = []
    let pageToken = ''
    do {
      const { ids, nextPageToken } = await list.page({ limit: 1, pageToken })
      expect(ids.length).toBe(1)
      read.push(...ids)
      pageToken = nextPageToken
    } while (pageToken !== '')
    expect(read).toEqual(created)
    for (const limit of [0, 101]) await expect(list.page({ limit })).rejects.toThrow('ValidationFailed')
  })
})

it('a list of one kind has no destination of the other kind, however many are newer', async () => {
  const { leads, hooks } = await newWorkspace()
  const { subscriptionId } = await leads.createSubscription({ destinationUrl })
  const operational = await leads.createSubscription({
    destinationUrl,
    purpose: SubscriptionPurpose.OPERATIONAL_EVENTS,
  })
  for (let index = 1; index < 4; index++) await hooks.createHook(hook)
  const listed = await leads.listSubscriptions({})
  expect(listed.subscriptions.map((each) => each.subscriptionId)).toEqual([operational.subscriptionId, subscriptionId])
  const { nextPageToken: pageToken } = await hooks.listHooks({ limit: 1 })
  expect(await issuesOf(leads.listSubscriptions({ pageToken }))).toEqual(['/pageToken cursor'])
  await expect(hooks.createHook(hook)).rejects.toThrow('ValidationFailed')
})
