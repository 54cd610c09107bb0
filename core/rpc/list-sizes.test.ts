import { expect, it } from 'vitest'
import { testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'

const cores = testCores({ started: false })

it('a list of conversations ends at 256 KiB, and its pages together have every conversation once', async () => {
  const { workspaceId } = await cores.newVisitor()
  const sent: string[] = []
  for (let index = 0; index < 24; index++) {
    const { conversationId } = await cores.newSession()
    await cores.core.messages.sendAsAgent({ conversationId, clientOperationId: `m${index}`, body: '😀'.repeat(4_000) })
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
