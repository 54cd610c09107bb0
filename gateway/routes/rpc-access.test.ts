import { globSync } from 'node:fs'
import { join } from 'node:path'
import { type DescMethod, type DescService, getOption } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { admission, OperatorScopeSchema, Places, scope } from '#proto/access/v1/access_pb.js'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { GET, LIST, SEND, sharedRpc, startRpc, WATCH } from '../test/test-rpc.ts'
import { botMethods, operatorMethods } from './rpc.ts'

const APPEND = '/rpc/service.bot.v1.BotService/AppendBotMessage'

/** For cases that leave no trace in a gateway and its core. */
const shared = sharedRpc()

describe('/rpc access', () => {
  test.each<[string, () => Promise<string> | string]>([
    ['no session', () => ''],
    ['garbage', () => 'Bearer nonsense'],
    ['a service token', async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.core' } })}`],
    [
      'a visitor’s grant',
      async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.widget.public-api' } })}`,
    ],
  ])('rejects a call with %s as Unauthenticated in the Connect protocol', async (_, authorization) => {
    const { post, remote } = await shared()
    const given = { authorization: await authorization() }
    const unary = await post(SEND, given)
    expect([unary.status, unary.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await unary.json()).toMatchObject({
      code: 'unauthenticated',
      details: [{ type: 'service.error.v1.ErrorInfo' }],
    })
    const stream = await post(WATCH, { ...given, 'content-type': 'application/connect+json' }, envelope('{}'))
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'application/connect+json'])
    expect(await stream.text()).toContain('"code":"unauthenticated"')
    expect([remote.calls.length, remote.watching]).toEqual([0, 0])
  })

  test('answers `unimplemented` for methods that operators may not call', async () => {
    const { post, remote } = await shared()
    const services: DescService[] = [SessionService, MessagingService, CommandService, LeadService, WorkspaceService]
    const methods = services.flatMap((service) => service.methods)
    const ours = methods.filter((method) => ['visitors:act', 'deliveries:work'].includes(getOption(method, scope)))
    expect(ours.length).toBeGreaterThan(15)
    for (const { parent, name } of ours) {
      const response = await post(`/rpc/${parent.typeName}/${name}`)
      expect([name, response.status, await response.json()]).toMatchObject([name, 501, { code: 'unimplemented' }])
    }
    for (const path of ['/rpc/service.messaging.v1.MessagingService/Nothing', '/rpc/grpc.health.v1.Health/Check'])
      expect((await post(path)).status).toBe(501)
    for (const path of [
      '/rpc/livez',
      '/rpc/service.messaging.v1.MessagingService/../../livez',
      '/rpc/a/b/c',
      '/rpc//livez',
    ])
      expect((await post(path)).status).toBeGreaterThanOrEqual(404)
    expect(remote.calls).toEqual([])
  })

  test('every method in the protos states its places and whether it is public; a public one has a scope of operators', async () => {
    const gen = join(import.meta.dirname, '../../proto/gen')
    const files = globSync('**/*_pb.js', { cwd: gen })
    const exported = await Promise.all(files.map(async (file) => Object.values(await import(join(gen, file)))))
    const isService = (value: unknown): value is DescService => (value as Partial<DescService>).kind === 'service'
    const methods: DescMethod[] = exported.flat().flatMap((value) => (isService(value) ? value.methods : []))
    expect(methods.length).toBeGreaterThan(100)
    const silent = methods.filter((method) => {
      const { places, public: isPublic } = getOption(method, admission)
      return places === Places.UNSPECIFIED || isPublic === undefined
    })
    expect(silent.map(({ name }) => name)).toEqual([])
    const open = methods.filter((method) => getOption(method, admission).public)
    expect(new Set(operatorMethods.values())).toEqual(new Set(open))
    const scopes = OperatorScopeSchema.values.map(({ localName }) => localName.toLowerCase().replace('_', ':'))
    for (const method of open) expect(scopes).toContain(getOption(method, scope))
    const ofBots = methods.filter((method) => getOption(method, admission).bots)
    expect(new Set(botMethods.values())).toEqual(new Set(ofBots))
    const namesFor = (name: string) =>
      ofBots.filter((method) => getOption(method, scope) === name).map((each) => each.name)
    expect(namesFor('bots:act')).toEqual(BotService.methods.map(({ name }) => name))
    expect([...namesFor('events:read'), ...namesFor('messages:read')].sort()).toEqual([
      'FollowEvents',
      'GetConversation',
      'ListEvents',
      'ListMessages',
    ])
    expect(ofBots).toHaveLength(8)
  })

  test('forwards the calls of a bot, and no others of its token', async () => {
    const { post, remote, session } = await shared()
    const tokenWith = (claims: object) => signWorkspaceSession({ claims: { aud: 'service.core', ...claims } })
    const statusOf = async (path: string, claims: object) =>
      (await post(path, { authorization: `Bearer ${await tokenWith(claims)}` })).status
    const bot = { scope: 'messages:read bots:act' }
    expect(await statusOf(GET, bot)).toBe(200)
    expect(remote.calls).toHaveLength(1)
    for (const path of [SEND, LIST, WATCH, '/rpc/service.privacy.v1.PrivacyService/ExportVisitor', '/rpc/x/y'])
      expect([path, await statusOf(path, bot)]).toEqual([path, 501])
    for (const claims of [{ scope: 'messages:read' }, { scope: 'bots:acts' }, { ...bot, aud: 'service' }])
      expect(await statusOf(GET, claims)).toBe(401)
    // A session of an operator is none of a bot, also if it claims the scope.
    const both = await tokenWith({ ...bot, aud: ['service.core', 'service.workspace'] })
    for (const token of [session, both])
      expect((await post(APPEND, { authorization: `Bearer ${token}` })).status).toBe(501)
    expect(remote.calls).toHaveLength(1)
  })

  test('limits calls of bots apart from those of consoles', async () => {
    const { post } = await startRpc({ env: { RATE_LIMIT_RPC_PER_MINUTE: '1', RATE_LIMIT_BOTS_PER_MINUTE: '2' } })
    const token = await signWorkspaceSession({ claims: { aud: 'service.core', scope: 'bots:act' } })
    const asBot = async () => (await post(GET, { authorization: `Bearer ${token}` })).status
    expect([(await post(LIST)).status, (await post(LIST)).status]).toEqual([200, 429])
    expect([await asBot(), await asBot(), await asBot()]).toEqual([200, 200, 429])
  })

  test('allows only POST', async () => {
    const { url, session } = await shared()
    const get = await fetch(`${url}${LIST}?connect=v1&encoding=json&message={}`, {
      headers: { authorization: `Bearer ${session}` },
    })
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
  })

  test.each(['application/grpc', 'application/grpc-web+proto', 'text/plain', 'application/x-www-form-urlencoded'])(
    'rejects other protocols (%s)',
    async (type) => {
      const { post, remote } = await shared()
      expect((await post(SEND, { 'content-type': type })).status).toBe(415)
      expect(remote.calls).toEqual([])
    },
  )

  test.each<[string, Record<string, string>]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['a hidden origin', { origin: 'null' }],
    ['another port', { origin: 'http://127.0.0.1:1' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another host of the site', { 'sec-fetch-site': 'same-site' }],
  ])('rejects pages of %s', async (_, headers) => {
    const { post, remote } = await shared()
    const response = await post(SEND, headers)
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([403, null])
    expect(remote.calls).toEqual([])
  })

  test('accepts requests from pages of the gateway’s host, and sends no CORS headers to other origins', async () => {
    const { post, url } = await shared()
    expect((await post(SEND, { origin: url, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    const preflight = await fetch(`${url}${SEND}`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    })
    expect([...preflight.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  test('rejects a malformed message with 400', async () => {
    const { post, remote } = await shared()
    const broken = await post(SEND, { 'content-type': 'application/proto' }, '\u00ff\u00ff')
    expect([broken.status, await broken.json()]).toMatchObject([400, { code: 'invalid_argument' }])
    expect(remote.calls).toEqual([])
  })

  test('rejects an oversized body, and a session token in the URL', async () => {
    const { post, remote, session } = await shared()
    const large = await post(SEND, {}, JSON.stringify({ body: 'x'.repeat(70_000) }))
    expect([large.status, await large.json()]).toMatchObject([429, { code: 'resource_exhausted' }])
    expect((await post(`${SEND}?token=${session}`)).status).toBe(400)
    expect(remote.calls).toEqual([])
  })

  test('limits calls per client address', async () => {
    const { post } = await startRpc({ env: { RATE_LIMIT_RPC_PER_MINUTE: '1' } })
    expect((await post(LIST)).status).toBe(200)
    const refused = await post(LIST)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
  })

  test('answers 404 if the setting CONSOLE is off', async () => {
    const { post } = await startRpc({ env: { CONSOLE: 'off' } })
    expect((await post(SEND)).status).toBe(404)
  })
})

function envelope(json: string): Uint8Array<ArrayBuffer> {
  const frame = Buffer.alloc(5 + json.length)
  frame.writeUInt32BE(json.length, 1)
  frame.write(json, 5)
  return frame
}
