import { once } from 'node:events'
import net from 'node:net'
import { create, type DescMessage, type DescMethod, toBinary } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { createGrpcWebTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GetSessionRequestSchema, SessionService } from '#proto/session/v1/session_pb.js'
import { someOf } from '../../test/support/is-long.ts'
import { type CoreServer, serveCore } from '../server.ts'
import { testCores } from '../test/cores.ts'
import { servedMethods } from '../test/operator-calls.ts'
import { knownScopes } from '../workspaces/access.ts'
import { accessOf } from './caller.ts'

const cores = testCores({ started: false })
let server: CoreServer
let authorization: string
/** The token of a bot has no other scopes. */
let authorizationOfBot: string
beforeAll(async () => {
  server = await serveCore(cores.core, { host: '127.0.0.1', port: 0 })
  const access = accessOf(cores.core)
  const scopes = knownScopes.filter((each) => each !== 'bots:act')
  authorization = `Bearer ${await access.issue({ subject: 'test', scopes })}`
  const bot = { subject: 'bot', scopes: ['bots:act'], workspaceId: cores.workspaceId }
  authorizationOfBot = `Bearer ${await access.issue(bot)}`
})
afterAll(() => server.close())

const pathOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`
const found = (name: string) => servedMethods().find(([each]) => each === name)![1]

async function post(method: DescMethod, body: string | Uint8Array<ArrayBuffer>, type = 'application/json') {
  const response = await fetch(`http://127.0.0.1:${server.port}${pathOf(method)}`, {
    method: 'POST',
    headers: {
      authorization: method.parent.name === 'BotService' ? authorizationOfBot : authorization,
      'content-type': type,
    },
    body,
  })
  return { status: response.status, text: await response.text() }
}

/** Returns the first issue of a failed call. */
function issueOf(text: string) {
  const { details } = JSON.parse(text.slice(text.indexOf('{'))).error ?? JSON.parse(text)
  return details?.[0]?.debug?.issues?.[0]
}

/** Returns a message with an unknown field for each message type in a request, with its path. */
function misspelt(type: DescMessage, seen: DescMessage[] = []): { json: unknown; path: string }[] {
  if (type.typeName.startsWith('google.protobuf.') || seen.includes(type)) return []
  const own = { json: { unknownName: 'sesame-value' }, path: '/unknownName' }
  const deeper = type.fields.flatMap((field) =>
    (field.message ? misspelt(field.message, [...seen, type]) : []).map(({ json, path }) => {
      if (field.fieldKind === 'list') return { json: { [field.jsonName]: [json] }, path: `/${field.jsonName}/0${path}` }
      const value = field.fieldKind === 'map' ? { 'map-key': json } : json
      return { json: { [field.jsonName]: value }, path: `/${field.jsonName}${path}` }
    }),
  )
  return [own, ...deeper]
}

/** Returns messages with an unknown enum value, by name and by number, for each enum in a request. */
function unknownEnums(type: DescMessage): { json: unknown; path: string }[] {
  return type.fields.flatMap((field) => {
    if (!field.enum) return []
    const isList = field.fieldKind === 'list'
    return ['SESAME_VALUE', 9999].map((value) => ({
      json: { [field.jsonName]: isList ? [value] : value },
      path: `/${field.jsonName}${isList ? '/0' : ''}`,
    }))
  })
}

const unary = someOf(
  servedMethods().filter(([, { methodKind }]) => methodKind === 'unary'),
  15,
)

describe('a JSON call', () => {
  it.each(unary)('of %s fails with ValidationFailed for each unknown field and enum value', async (_, method) => {
    for (const { json, path } of misspelt(method.input)) {
      const { status, text } = await post(method, JSON.stringify(json))
      expect([status, issueOf(text)]).toEqual([400, { path, rule: 'additionalProperties' }])
      expect(text).not.toContain('sesame')
    }
    for (const { json, path } of unknownEnums(method.input)) {
      const { status, text } = await post(method, JSON.stringify(json))
      expect([status, issueOf(text)]).toEqual([400, { path, rule: 'enum' }])
      expect(text).not.toMatch(/SESAME|9999/)
    }
  })

  it('with a misspelt address ban bans nobody', async () => {
    const { sessionId } = await cores.newSession()
    const { status } = await post(
      found('SessionService.BanVisitor'),
      JSON.stringify({ sessionId, reason: 'Spam', addressBanSecond: 3600 }),
    )
    expect(status).toBe(400)
    const { text } = await post(found('SessionService.GetSession'), JSON.stringify({ sessionId }))
    expect(JSON.parse(text).session.visitorBanned).toBeUndefined()
  })

  it('names no value in the error for a value of a wrong type or for invalid JSON', async () => {
    for (const body of ['{"sessionId": {"sesame": 1}}', '{"sessionId": sesame}', '["sesame"]', '"sesame"', '']) {
      const { status, text } = await post(found('SessionService.GetSession'), body)
      expect([status, issueOf(text)]).toEqual([400, { rule: 'json' }])
      expect(text).not.toContain('sesame')
    }
  })

  it('accepts each known form: names of the proto, numbers of enums, null and JSON of well-known types', async () => {
    const { workspaceId } = cores
    const accepted = [
      { workspace_id: workspaceId, status: 1 },
      { workspaceId, status: 'CONVERSATION_STATUS_OPEN' },
      { workspaceId: null, status: null },
    ]
    for (const json of accepted)
      expect((await post(found('MessagingService.ListConversations'), JSON.stringify(json))).status).toBe(200)
    const search = { workspaceId, query: 'hello', from: '2026-01-01T00:00:00Z' }
    expect((await post(found('MessagingService.SearchConversations'), JSON.stringify(search))).status).toBe(200)
  })

  it.each(['', '&base64=1'])('by GET fails for an unknown field, and answers without one (%s)', async (base64) => {
    const get = async (message: object) => {
      const text = JSON.stringify(message)
      const encoded = base64 ? Buffer.from(text).toString('base64url') : encodeURIComponent(text)
      const query = `?connect=v1&encoding=json${base64}&message=${encoded}`
      const url = `http://127.0.0.1:${server.port}${pathOf(found('SessionService.GetSession'))}${query}`
      const response = await fetch(url, { headers: { authorization } })
      return { status: response.status, text: await response.text() }
    }
    const { sessionId } = await cores.newSession()
    expect((await get({ sessionId })).status).toBe(200)
    const { status, text } = await get({ sessionId, sessionIdd: 'x' })
    expect([status, issueOf(text)]).toEqual([400, { path: '/sessionIdd', rule: 'additionalProperties' }])
  })

  function envelope(flags: number, json: object) {
    const message = Buffer.from(JSON.stringify(json))
    const head = Buffer.alloc(5)
    head.writeUInt8(flags, 0)
    head.writeUInt32BE(message.length, 1)
    return new Uint8Array(Buffer.concat([head, message]))
  }

  it('of a stream fails for an unknown field, whatever the flags of its envelope', async () => {
    for (const flags of [0, 4, 128]) {
      const body = envelope(flags, { workspaceId: cores.workspaceId, workspace: 'sesame' })
      const { text } = await post(found('MessagingService.WatchConversations'), body, 'application/connect+json')
      expect(issueOf(text)).toEqual({ path: '/workspace', rule: 'additionalProperties' })
      expect(text).not.toContain('sesame')
    }
  })

  it('over gRPC-Web fails for an unknown field, and answers without one', async () => {
    const misspelt = envelope(0, { sessionIdd: 'sesame' })
    const { text } = await post(found('SessionService.GetSession'), misspelt, 'application/grpc-web+json')
    expect(text).toContain('grpc-status: 3')
    expect(text).toContain('sessionIdd')
    expect(text).not.toContain('sesame')
    // The message of the error is sent in a header, which cannot contain a lone surrogate.
    const surrogate = await post(
      found('SessionService.GetSession'),
      envelope(0, { '\udfff': 1 }),
      'application/grpc-web+json',
    )
    expect(surrogate.text).toContain('grpc-status: 3')

    const transport = createGrpcWebTransport({
      baseUrl: `http://127.0.0.1:${server.port}`,
      httpVersion: '1.1',
      useBinaryFormat: false,
    })
    const { sessionId } = await cores.newSession()
    const answer = await createClient(SessionService, transport).getSession(
      { sessionId },
      { headers: { authorization } },
    )
    expect(answer.session?.sessionId).toBe(sessionId)
  })

  it('without a token is rejected before its body is read', async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}${pathOf(found('SessionService.GetSession'))}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"unknownName":1}',
    })
    expect(response.status).toBe(401)
  })
})

it('a binary call ignores unknown fields, so that newer clients can call an older core', async () => {
  const { sessionId } = await cores.newSession()
  const known = toBinary(GetSessionRequestSchema, create(GetSessionRequestSchema, { sessionId }))
  // Field 999 with the wire type «varint».
  const bytes = new Uint8Array([...known, 0xb8, 0x3e, 1])
  expect((await post(found('SessionService.GetSession'), bytes, 'application/proto')).status).toBe(200)
})

describe('a call in a form that the gateway accepts', () => {
  /** Sends a call over a connection of its own, with this target, and returns the status. */
  async function statusOf(method: string, target: string, headers: string, body = '') {
    const socket = net.connect(server.port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => (text += chunk))
    const fixed = `Host: x\r\nConnection: close\r\nAuthorization: ${authorization}\r\nContent-Length: ${body.length}`
    socket.write(`${method} ${target} HTTP/1.1\r\n${fixed}\r\n${headers}\r\n${body}`)
    await once(socket, 'close')
    return Number(text.split(' ')[1])
  }
  const json = 'Content-Type: application/json\r\n'
  const path = '/service.session.v1.SessionService/CheckOrigin'

  it.each([
    'application/json; charset="utf-8"',
    'application/json;charset="UTF-8"',
    'Application/JSON; Charset="utf-8"',
    'application/json; charset=utf-8',
    'application/json ;  charset=utf-8',
    'application/json ; charset="utf-8"',
  ])('has the type %s', async (type) => {
    expect(await statusOf('POST', path, `Content-Type: ${type}\r\n`, '{}')).toBe(200)
  })

  it('has a target with scheme and host', async () => {
    expect(await statusOf('POST', `http://x${path}`, json, '{}')).toBe(200)
    expect(await statusOf('POST', `http://user@x:80${path}?a=http://y`, json, '{}')).toBe(200)
    expect(await statusOf('POST', `https://x${path}`, 'Content-Type: application/proto\r\n')).toBe(200)
    expect(await statusOf('GET', 'http://x/livez', '')).toBe(200)
    expect(await statusOf('GET', 'HTTP://x/livez', '')).toBe(200)
    expect(await statusOf('GET', 'http://x', '')).toBe(404)
    expect(await statusOf('GET', 'http://livez', '')).toBe(404)
  })

  it('has another charset, and is refused', async () => {
    expect(await statusOf('POST', path, 'Content-Type: application/json; charset="latin1"\r\n', '{}')).toBe(415)
  })
})
