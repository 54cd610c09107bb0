import { createClient } from '@connectrpc/connect'
import { expect, it, onTestFinished } from 'vitest'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { until } from '../../test/support/until.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { watchConversations } from '../rpc/watch-conversations.ts'
import { testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { visitorOf } from '../test/visitor-marks.ts'
import { accessOf } from '../transport/caller.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { eraseVisitor } from './erasures.ts'
import { beginRemoval } from './removals.ts'

const cores = testCores({ count: 2 })

/** Collects what an inbox stream and a feed stream of the other core say. */
async function openStreams(ofWorkspace = cores.workspaceId) {
  const said = { inbox: [] as string[], noted: [] as string[], feed: [] as string[], leads: [] as string[] }
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const inbox = watchConversations(cores.other, { workspaceId: ofWorkspace, scopes: operatorScopes }, stop.signal)
  const client = createClient(EventsService, transportTo(cores.other))
  const token = await accessOf(cores.core).issue({ subject: 'crm', scopes: ['events:read'], workspaceId: ofWorkspace })
  const options = { headers: { authorization: `Bearer ${token}` }, signal: stop.signal }
  let isOpen = false
  void (async () => {
    for await (const { frame } of inbox) {
      if (frame.case === 'removed') said.inbox.push(...frame.value.conversationIds)
      if (frame.case === 'notes') said.noted.push(frame.value.conversationId)
    }
  })()
  void (async () => {
    for await (const page of client.followEvents({}, options)) {
      isOpen = true
      said.feed.push(...page.removedConversationIds)
      said.leads.push(...page.removedLeadIds)
    }
  })().catch(() => {})
  await until('the streams', () => isOpen)
  return said
}

it('an erasure is said to the inboxes and feed readers of its workspace, on every core', async () => {
  const session = await cores.newSession()
  await cores.send(session, 'hello')
  const { conversationId } = session
  const lead = { workspaceId: cores.workspaceId, source: 'crm', fields: { note: 'hello' }, conversationId }
  const leadId = await captureLead(cores.core, lead, undefined)
  const said = await openStreams()
  const elsewhere = await openStreams((await cores.newSite()).workspaceId)
  await eraseVisitor(cores.core, await visitorOf(cores, session), 'desk')
  await until('the inbox frame', () => said.inbox.includes(conversationId))
  await until('the feed frame', () => said.feed.includes(conversationId))
  await until('the lead', () => said.leads.includes(leadId))
  expect([...elsewhere.inbox, ...elsewhere.feed]).toEqual([])
})

it('an old conversation that is removed is said, and listed again if it was used in the meantime', async () => {
  const session = await cores.newSession()
  await cores.send(session, 'hello')
  const { conversationId } = session
  const said = await openStreams()
  const removal = { workspaceId: cores.workspaceId, kind: 'conversations' as const, ids: [conversationId] }
  await beginRemoval(cores.core, removal)
  await until('the inbox frame', () => said.inbox.includes(conversationId))
  cores.advance(120)
  await until('the note frame', () => said.noted.includes(conversationId))
})
