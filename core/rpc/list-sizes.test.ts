import { expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { send, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'

const cores = testCores({ started: false })

itLong('a list of conversations ends at 256 KiB, and its pages together have every conversation once', async () => {
  const { workspaceId } = await cores.newVisitor()
  const sent: string[] = []
  for (let index = 0; index < 24; index++) {
    const { conversationId } = await cores.newSession()
    await sendAsAgent(cores.core, { conversationId, clientOperationId: `m${index}`, body: '😀'.repeat(4_000) })
    sent.push(conversationId)
  }
  const { messaging } = await clientsOf(cores.core, undefined)
  const pages = []
  let pageToken: string | undefined
  do {
    const page = await messaging.listConversations({ workspaceId, limit: 100, pageToken })
    pages.push(page)
    pageToken = page.nextPageToken
  } while (pageToken)
  expect(pages.length).toBe(2)
  expect(
    pages.flatMap(({ conversations }) => conversations.map(({ conversationId }) => conversationId)).sort(),
  ).toEqual(sent.sort())
  for (const { conversations } of pages) {
    const bytes = conversations.reduce((sum, { lastMessage }) => sum + Buffer.byteLength(lastMessage?.body ?? ''), 0)
    expect(bytes).toBeLessThanOrEqual(262_144)
    expect(conversations.length).toBeGreaterThan(0)
  }
})

it('a page token is refused by each other list and workspace', async () => {
  const own = await cores.newSite()
  const other = await cores.newSite()
  const { messaging, workspaces, leads, hooks } = await clientsOf(cores.core, undefined)
  for (let index = 0; index < 2; index++) {
    const visitor = await cores.newVisitor(own)
    await send(cores.core, visitor, 'hello')
  }
  const entries = ['a@shop.example', 'b@shop.example'].map((email) => ({
    of: { case: 'email' as const, value: email },
  }))
  await workspaces.addSuppressions({ workspaceId: own.workspaceId, entries, reason: 'asked us' })
  const lists = {
    conversations: (page: Page) => messaging.listConversations(page),
    waiting: (page: Page) => messaging.listConversations({ ...page, unanswered: true }),
    search: (page: Page) => messaging.searchConversations({ ...page, query: 'hello' }),
    subscriptions: (page: Page) => leads.listSubscriptions(page),
    hooks: (page: Page) => hooks.listHooks(page),
    suppressions: (page: Page) => workspaces.listSuppressions(page),
    'policy changes': (page: Page) => workspaces.listPolicyChanges(page),
    leads: (page: Page) => leads.listLeads(page),
    deliveries: (page: Page) => leads.listDeliveries(page),
  }
  for (const from of ['conversations', 'waiting', 'suppressions'] as const) {
    const { nextPageToken: pageToken } = await lists[from]({ workspaceId: own.workspaceId, limit: 1 })
    expect(pageToken).toBeTruthy()
    for (const [name, list] of Object.entries(lists)) {
      for (const { workspaceId } of [own, other]) {
        const result = await list({ workspaceId, pageToken }).then(
          () => 'read',
          (error) => error.findDetails(ErrorInfoSchema)[0].issues,
        )
        const isOwn = name === from && workspaceId === own.workspaceId
        if (isOwn) expect(result).toBe('read')
        else expect(result, `${from} to ${name}`).toMatchObject([{ path: '/pageToken', rule: 'cursor' }])
      }
    }
  }
})

interface Page {
  workspaceId: string
  limit?: number
  pageToken?: string | undefined
}
