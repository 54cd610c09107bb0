import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { corpus, lineEnds, pasted, phones, stored } from '../support/texts-of-the-world.ts'
import { until } from '../support/until.ts'

const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '1000' } })

it('a text that a person enters has LF for every line end, wherever it enters', async () => {
  const textarea = { name: 'wish', label: 'Wish', type: 'textarea' }
  const { messaging, leads, workspaces } = stack.operator()
  const { siteKey, workspaceId } = stack.demo
  await workspaces.updateInstallation({
    siteKey,
    capabilities: { preChatForm: true, rating: true },
    forms: { preChat: { fields: [textarea, { name: 'phone', label: 'Phone', type: 'tel' }] } },
    appearance: { title: lineEnds.join('x'), greeting: pasted, translations: { de: { greeting: pasted } } },
  })
  const visitor = await stack.newVisitor()
  const { conversationId } = visitor.session
  const agent = { displayName: 'Ada' }

  const headers = { 'Idempotency-Key': 'first' }
  const message = { clientOperationId: 'first', body: pasted, contentType: 'text' }
  expect(await visitor.call('POST', '/messages', { headers, body: message })).toMatchObject({ status: 202 })
  const again = await visitor.call('POST', '/messages', { headers, body: { ...message, body: stored } })
  expect(again.status).toBe(202)
  const sent = { conversationId, clientOperationId: 'second', body: pasted, agent }
  await messaging.sendAgentMessage(sent)
  expect((await visitor.history()).map(({ body }) => body)).toEqual([stored, stored])

  await messaging.addNote({ ...sent, clientOperationId: 'note' })
  expect((await messaging.listNotes({ conversationId })).notes.map(({ body }) => body)).toEqual([stored])
  await messaging.saveReply({ workspaceId, shortcut: 'soft', body: pasted })
  const { replies } = await messaging.listSavedReplies({ workspaceId })
  expect(replies.find(({ shortcut }) => shortcut === 'soft')?.body).toBe(stored)
  await leads.captureLead({ workspaceId, source: 'test', fields: { wish: pasted } })
  const form = { headers: { 'Idempotency-Key': randomUUID() }, body: { fields: { wish: pasted } } }
  expect(await visitor.call('POST', '/forms/pre-chat', form)).toMatchObject({ status: 202 })
  const captured = (await leads.listLeads({ workspaceId })).leads.flatMap(({ fields }) => fields.wish ?? [])
  expect(captured).toEqual([stored, stored])
  const { installations } = await workspaces.listInstallations({ workspaceId })
  const installation = installations.find(({ publicSiteKey }) => publicSiteKey === siteKey)
  const { title, greeting, translations } = installation!.appearance!
  expect([title?.split('x').join(''), greeting, translations.de?.greeting]).toEqual(['\n'.repeat(11), stored, stored])

  for (const [index, displayName] of corpus.entries())
    await messaging.sendAgentMessage({ ...sent, clientOperationId: `name-${index}`, agent: { displayName } })
  const names = (await visitor.history()).slice(2).map(({ author }) => author.displayName)
  expect(names).toEqual(corpus)
})

itLong('a phone number of any script is accepted by forms, stored as E.164, suppressed and found', async () => {
  const { messaging, leads, workspaces } = stack.operator()
  const { siteKey, workspaceId } = stack.demo
  await workspaces.updateInstallation({
    siteKey,
    capabilities: { preChatForm: true },
    forms: { preChat: { fields: [{ name: 'phone', label: 'Phone', type: 'tel', required: true }] } },
  })
  const submit = async (phone: string) => {
    const visitor = await stack.newVisitor()
    const headers = { 'Idempotency-Key': randomUUID() }
    return visitor.call('POST', '/forms/pre-chat', { headers, body: { fields: { phone } } })
  }
  for (const phone of phones) expect([phone, (await submit(phone)).status]).toEqual([phone, 202])
  expect((await submit('call me')).body).toMatchObject({ issues: [{ path: '/fields/phone', rule: 'format' }] })
  const captured = (await leads.listLeads({ workspaceId })).leads.flatMap(({ fields }) => fields.phone ?? [])
  expect(captured).toEqual(phones.map(() => '+966501234567'))

  const find = async (query: string) => (await messaging.searchConversations({ workspaceId, query })).results.length
  await until('the search entries', async () => (await find('+966501234567')) === phones.length)
  for (const query of [...phones, '0501234567', '٠٥٠ ١٢٣ ٤٥٦٧'])
    expect([query, await find(query)]).toEqual([query, phones.length])

  await workspaces.addSuppressions({ workspaceId, entries: [{ of: { case: 'phone', value: phones[0]! } }] })
  for (const phone of phones) expect([phone, (await submit(phone)).body.code]).toEqual([phone, 'VisitorSuppressed'])
})
