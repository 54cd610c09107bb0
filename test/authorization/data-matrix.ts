import { randomUUID } from 'node:crypto'
import {
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  getOption,
  toJsonString,
} from '@bufbuild/protobuf'
import { createContextValues, type Transport } from '@connectrpc/connect'
import { scope } from '#proto/access/v1/access_pb.js'
import { requestNavigation } from '../../core/commands/commands.ts'
import { assignAgent } from '../../core/conversations/assignments.ts'
import { sendAsAgent } from '../../core/conversations/messages.ts'
import { addNote } from '../../core/conversations/notes.ts'
import { captureLead } from '../../core/deliveries/lead-capture.ts'
import { createSubscription } from '../../core/deliveries/subscriptions.ts'
import type { TestCores } from '../../core/test/cores.ts'
import { flushFeed } from '../../core/test/feed.ts'
import { requests, servedMethods, type Things, thingsOf } from '../../core/test/operator-calls.ts'
import { transportTo } from '../../core/test/transports.ts'
import { acceptForms, flushAll, plantMarks } from '../../core/test/visitor-marks.ts'
import { accessOf } from '../../core/transport/caller.ts'
import { saveReply } from '../../core/workspaces/saved-replies.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { createConnection, updateInstallation, updateWorkspace } from '../../core/workspaces/workspaces.ts'
import { isLong } from '../support/is-long.ts'

/** A kind of data: the scope that shows it, and the names of the marks in it (`plantMarks`). */
interface DataSource {
  scope: string
  marks: RegExp
}

/**
 * All data that a method may show. A mark that is in no source must not be in any response. A new
 * kind of data needs an entry here.
 */
export const dataSources: Record<string, DataSource> = {
  messages: {
    scope: 'messages:read',
    marks: /^(body|answer|elsewhere|operation|agentoperation|watched|comment|grow|quick)/,
  },
  tags: { scope: 'messages:read', marks: /^tag/ },
  notes: { scope: 'messages:read', marks: /^internal/ },
  'the assigned agent': { scope: 'messages:read', marks: /^agentname/ },
  'saved replies': { scope: 'messages:read', marks: /^reply/ },
  'the name and subject of a verified visitor': { scope: 'sessions:read', marks: /^(sub|name)/ },
  'the context of a verified visitor': { scope: 'sessions:read', marks: /^(key|value)\w/ },
  'the page of a visitor': { scope: 'sessions:read', marks: /^(created|message|report)(url|title|r)/ },
  'events of sessions': { scope: 'sessions:read', marks: /^session\.identified/ },
  'requests to the visitor’s page': { scope: 'commands:read', marks: /^(purpose|target|navigation\.|pixels)/ },
  'leads and contacts': { scope: 'leads:read', marks: /^(preChat|offline|note|contact)/ },
  subscriptions: { scope: 'subscriptions:read', marks: /^(destination|mapped|header)/ },
  'settings of workspaces': { scope: 'workspaces:read', marks: /^(workspace|connection|greeting|suppression)/ },
}

/** The scope that stands for all data of one visitor. */
const exportScope = 'visitors:export'

/** Methods that remove or change what the other methods show. They are called last. */
const isDestructive = (name: string) => /\.(Erase|Assign|Unassign|Ban|Unban|Revoke|Redact)/.test(name)

/** Which data a method shows, by method. */
export interface ShownData {
  /** Sources that each method shows to a caller with every scope. */
  shown: Map<string, string[]>
  /** Descriptions of responses with data that the caller's scopes do not cover. */
  leaks: string[]
}

/**
 * Calls each method for operators with its own scope only, in the long run also with one more scope,
 * and with every scope. Compares the marks in the responses with the scopes.
 */
export async function walkData(cores: TestCores): Promise<ShownData> {
  const { things, marks, visitor } = await plantData(cores)
  const transport = transportTo(cores.core)
  const scopes = [...new Set(Object.values(dataSources).map((source) => source.scope))]
  const shown = new Map<string, string[]>()
  const leaks: string[] = []
  const methods = servedMethods()
    .filter(([, method]) => operatorScopes.has(getOption(method, scope)) && method.output.fields.length > 0)
    .sort(([a], [b]) => Number(isDestructive(a)) - Number(isDestructive(b)))

  for (const [name, method] of methods) {
    const own = getOption(method, scope)
    for (const held of [[own], ...(isLong ? scopes.map((more) => [own, more]) : []), [...operatorScopes]]) {
      const token = await accessOf(cores.core).issue({
        subject: 'reader',
        scopes: held,
        // Some methods act on all workspaces; a token of one workspace cannot call them.
        ...(!/\.(Create|List)Workspaces?$/.test(name) && { workspaceId: things.workspaceId }),
      })
      const call = { transport, method, token, marks, visitor, cores }
      const texts = await Promise.all(requestsOf(name, things, marks).map((request) => textOf(call, request)))
      const found = marks.filter((mark) => texts.some((text) => text.includes(mark)))
      for (const mark of found) {
        const [source, data] = sourceOf(mark)
        if (own === exportScope) continue
        if (!data || !held.includes(data.scope)) leaks.push(`${name} shows ${source} with ${held.join(' ')}`)
      }
      if (held.length < operatorScopes.size) continue
      const sources = found.map((mark) => sourceOf(mark)[0]).filter((source) => dataSources[source])
      shown.set(name, [...new Set(sources)])
    }
  }
  return { shown, leaks: [...new Set(leaks)] }
}

function sourceOf(mark: string): [string, DataSource | undefined] {
  return (
    Object.entries(dataSources).find(([, { marks }]) => marks.test(mark)) ?? [`the private mark ${mark}`, undefined]
  )
}

async function plantData(cores: TestCores) {
  const { core, workspaceId, connectionId, publicSiteKey } = cores
  await acceptForms(cores)
  const planted = await plantMarks(cores, { verified: true })
  const { sessionId, conversationId } = planted.session
  const own: string[] = []
  const mark = (name: string) => {
    const text = `${name}${randomUUID().replaceAll('-', '')}`
    own.push(text)
    return text
  }
  const things = await thingsOf(cores, sessionId, conversationId)
  const desk = { subject: 'desk' }
  const agent = { displayName: mark('agentname') }
  await addNote(core, { conversationId, clientOperationId: 'note-1', body: mark('internal'), agent }, undefined)
  await assignAgent(core, conversationId, agent, undefined)
  await saveReply(core, workspaceId, { shortcut: 'mark', body: mark('reply') })
  const fields = { name: mark('contact'), email: `${mark('contact')}@example.org`, phone: mark('contact') }
  const leadId = await captureLead(core, { workspaceId, source: 'crm', fields, conversationId }, undefined)
  const { subscriptionId } = await createSubscription(
    core,
    {
      workspaceId,
      destinationUrl: `https://93.184.216.34/${mark('destination')}`,
      mappedFields: [mark('mapped')],
      headers: [{ name: mark('header'), value: mark('secret') }],
      automatic: false,
    },
    desk,
  )
  const appearance = { greeting: mark('greeting') }
  await updateInstallation(core, publicSiteKey, { appearance }, undefined)
  await updateWorkspace(core, workspaceId, { name: mark('workspace') })
  const connection = await createConnection(core, workspaceId, mark('connection'), undefined)
  const url = `https://shop.example/${mark('target')}`
  const { content: command } = await requestNavigation(core, { sessionId, url }, desk)
  await flushAll(cores)
  for (const each of cores.cores) await flushFeed(each)
  return {
    things: {
      ...things,
      commandId: command.commandId,
      leadId,
      subscriptionId,
      connectionId: connection.connectionId ?? connectionId,
    },
    marks: [...planted.marks, ...own, 'session.identified', 'navigation.requested'],
    visitor: planted.session,
  }
}

/** Requests of a method for the planted data. A search is called once per mark. */
function requestsOf(name: string, things: Things, marks: string[]): Record<string, unknown>[] {
  const { conversationId, workspaceId } = things
  switch (name) {
    case 'MessagingService.SearchConversations':
      return marks.map((query) => ({ workspaceId, query: query.slice(0, 200), limit: 50 }))
    case 'MessagingService.SendAgentMessage':
      return [{ conversationId, clientOperationId: randomUUID(), body: 'Hello' }]
    default:
      return [requests[name]!(things)]
  }
}

interface Call {
  transport: Transport
  method: DescMethod
  token: string
  marks: string[]
  visitor: Parameters<TestCores['send']>[0]
  cores: TestCores
}

/** Returns the JSON of all messages of a response; an empty text if the call fails. */
async function textOf(call: Call, request: Record<string, unknown>): Promise<string> {
  const { transport, method, token } = call
  const headers = new Headers({ authorization: `Bearer ${token}` })
  const stop = new AbortController()
  const values = createContextValues()
  if (method.methodKind === 'unary') {
    return transport.unary(method as DescMethodUnary, stop.signal, 20_000, headers, request, values).then(
      ({ message }) => toJsonString(method.output, message),
      () => '',
    )
  }
  const input = (async function* () {
    yield request
  })()
  const { message } = await transport.stream(method as DescMethodStreaming, stop.signal, 20_000, headers, input, values)
  let text = ''
  try {
    let last: string | undefined
    for await (const part of message) {
      text += toJsonString(method.output, part)
      // The first response has all planted events.
      if (method.name === 'FollowEvents') break
      if (method.name !== 'WatchConversations') continue
      last ??= await changeConversation(call)
      if (text.includes(last)) break
    }
  } catch {
    // A refused call shows nothing.
  } finally {
    stop.abort()
  }
  return text
}

/** Changes the planted conversation. Returns the text of the last change. */
async function changeConversation({ cores, visitor, marks }: Call): Promise<string> {
  const { core, sign, identify, newSession } = cores
  const { conversationId, sessionId } = visitor
  const target = `target${randomUUID()}`
  marks.push(target)
  await requestNavigation(core, { sessionId, url: `https://shop.example/${target}` }, { subject: 'desk' })
  const subject = marks.find((mark) => mark.startsWith('sub'))!
  // The new session continues the conversation of the visitor, whose log gets `session.identified`.
  await identify(await newSession(), sign({ sub: subject }))
  const body = `watched${randomUUID()}`
  marks.push(body)
  await sendAsAgent(core, {
    conversationId,
    clientOperationId: randomUUID(),
    body,
    agent: { displayName: 'Ada' },
  })
  return body
}
