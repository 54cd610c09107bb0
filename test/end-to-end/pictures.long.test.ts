import { randomBytes } from 'node:crypto'
import { ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { errorInfoOf } from '../../core-client/error-info.ts'
import { dataFolderSecrets } from '../../serve/data-folder.ts'
import { imageOf, jpegOf, pngOf, pngText, webpOf } from '../support/images.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { until } from '../support/until.ts'
import { signWorkspaceSession, workspaceSessionSecret } from '../support/workspace-session.ts'

const gatewayOrigin = 'https://chat.example'
const picturesUrl = `${gatewayOrigin}/api/integrations/v1/widget/pictures/`
const everyScope = 'messages:read messages:write workspaces:read workspaces:write'
const stack = useLocalStack({
  cores: 2,
  env: { RATE_LIMIT_FACTOR: '100' },
  coreEnv: { WORKSPACE_SESSION_SECRET: workspaceSessionSecret },
})

const transportWith = (baseUrl: string, token: string) =>
  createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    useBinaryFormat: true,
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${token}`)
        return next(request)
      },
    ],
  })

/** Creates clients that call through a gateway, as the console does. */
async function operator(claims: Record<string, unknown> = {}) {
  const token = await signWorkspaceSession({
    claims: { wid: stack.demo.workspaceId, sub: 'ada', scope: everyScope, ...claims },
  })
  const transport = transportWith(`${stack.gateways[0]!.url}/rpc`, token)
  return { messaging: createClient(MessagingService, transport), workspaces: createClient(WorkspaceService, transport) }
}

type Operator = Awaited<ReturnType<typeof operator>>

/** Uploads a picture of the operator. Returns its URL, or the error. */
async function upload({ messaging }: Operator, image: Uint8Array, origin = gatewayOrigin) {
  try {
    return (await messaging.setAgentPicture({ image, gatewayOrigin: origin })).avatarUrl ?? 'removed'
  } catch (error) {
    const { code, issues } = errorInfoOf(ConnectError.from(error))!
    return [code, ...issues.map(({ path, rule }) => `${path} ${rule}`)].join(' ')
  }
}

const get = (url: string, init?: RequestInit) => fetch(stack.gateways[0]!.url + new URL(url).pathname, init)
const contentOf = async (url: string) => Buffer.from(await (await get(url)).arrayBuffer())

describe('a file that is no small picture', () => {
  it.each<[name: string, file: Uint8Array, refusal: string]>([
    ['HTML', Buffer.from('<!doctype html><script>alert(1)</script>'), 'contentType'],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'), 'contentType'],
    ['GIF', Buffer.from('GIF89a\u0001\u0000\u0001\u0000'), 'contentType'],
    ['one byte', Buffer.from('x'), 'contentType'],
    ['random bytes after the signature of PNG', imageOf('image/png', 500), 'format'],
    ['random bytes after the signature of JPEG', imageOf('image/jpeg', 500), 'format'],
    ['random bytes after the signature of WebP', imageOf('image/webp', 500), 'format'],
    ['a PNG with HTML behind it', Buffer.concat([pngOf(), Buffer.from('<script>alert(1)</script>')]), 'format'],
    ['a JPEG with a ZIP behind it', Buffer.concat([jpegOf(), Buffer.from('PK\u0003\u0004')]), 'format'],
    ['a WebP with HTML behind it', Buffer.concat([webpOf(), Buffer.from('<script>')]), 'format'],
    ['a PNG without its end', pngOf().subarray(0, -5), 'format'],
    ['a JPEG without its end', jpegOf().subarray(0, -1), 'format'],
    ['a WebP without its end', webpOf().subarray(0, -1), 'format'],
    ['a WebP without a frame', webpOf({ frame: 'ANMF' }), 'format'],
    ['a PNG of 20,000 × 20,000 pixels', pngOf({ width: 20_000, height: 20_000 }), 'maximum'],
    ['a PNG of 2³¹ pixels', pngOf({ width: 2 ** 31, height: 1 }), 'maximum'],
    ['a PNG of no pixels', pngOf({ width: 0 }), 'maximum'],
    ['a JPEG of 513 pixels', jpegOf({ height: 513 }), 'maximum'],
    ['a WebP of 513 pixels', webpOf({ width: 513 }), 'maximum'],
    ['a lossless WebP of 513 pixels', webpOf({ height: 513, frame: 'VP8L' }), 'maximum'],
  ])('is refused: %s', async (_name, file, rule) => {
    expect(await upload(await operator(), file)).toBe(`ValidationFailed /image ${rule}`)
  })

  it('is refused above 64 KiB, and one of 64 KiB is accepted', async () => {
    const { serviceToken, workspaceId } = stack.demo
    const { messaging } = {
      messaging: createClient(MessagingService, transportWith(stack.cores[0]!.url, serviceToken)),
    }
    const send = (image: Uint8Array) => messaging.setAgentPicture({ workspaceId, image, gatewayOrigin })
    const rest = pngOf({ pixels: 0 }).length
    expect((await send(pngOf({ pixels: 65_536 - rest }))).avatarUrl).toContain(picturesUrl)
    await expect(send(pngOf({ pixels: 65_537 - rest }))).rejects.toThrow('ValidationFailed')
    await send(new Uint8Array())
  })

  it('never fails the core, whatever bytes are changed or missing', async () => {
    const ada = await operator()
    for (const file of [pngOf(), jpegOf(), webpOf(), webpOf({ frame: 'VP8L' })])
      for (let turn = 0; turn < 40; turn += 1) {
        const changed = Buffer.from(file.subarray(0, file.length - (turn % 2 ? Math.floor(Math.random() * 60) : 0)))
        changed.set(randomBytes(2), Math.floor(Math.random() * (changed.length - 2)))
        expect(await upload(ada, changed)).toMatch(/^(https:|ValidationFailed \/image)/)
      }
  })
})

describe('a picture of an operator', () => {
  it.each([
    ['image/png', pngOf({ extra: pngText('GPS') })],
    ['image/jpeg', jpegOf()],
    ['image/webp', webpOf()],
    ['image/webp', webpOf({ frame: 'VP8L' })],
  ])('is stored without metadata and served with safe headers: %s', async (type, file) => {
    const url = await upload(await operator(), file)
    expect(url).toMatch(/\/pictures\/[\w-]{43}$/)
    const answer = await get(url)
    const { headers } = answer
    expect([answer.status, headers.get('content-type')]).toEqual([200, type])
    expect(headers.get('cache-control')).toBe('public, max-age=2592000, immutable')
    expect(headers.get('content-security-policy')).toBe("default-src 'none';frame-ancestors 'none';sandbox")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('set-cookie')).toBeNull()
    const content = Buffer.from(await answer.arrayBuffer())
    expect(content.includes('GPS')).toBe(false)
    expect(content.length).toBeLessThan(file.length)
    // What is stored is a picture again, with the same content.
    expect(await upload(await operator(), content)).toBe(url)

    const etag = headers.get('etag')!
    const head = await get(url, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, `${content.length}`, ''])
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
      expect((await get(url, { headers: { 'if-none-match': tag } })).status, tag).toBe(304)
    expect((await get(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
    const foreign = await get(url, { headers: { origin: 'https://any.example', 'sec-fetch-site': 'cross-site' } })
    expect(foreign.status).toBe(200)
  })

  it('is not found under other ids, and other methods are refused', async () => {
    const known = await upload(await operator(), pngOf())
    const other = known.slice(0, -1) + (known.endsWith('A') ? 'B' : 'A')
    for (const url of [other, `${known}x`, known.slice(0, -1), picturesUrl, `${picturesUrl}..%2Fconfig`])
      for (const tag of ['"x"', '*'])
        expect((await get(url, { headers: { 'if-none-match': tag } })).status, url).toBe(404)
    expect((await get(other)).headers.get('content-type')).toMatch(/^application\/json/)
    const post = await get(known, { method: 'POST' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })

  it('needs the scope, and the workspace of the token', async () => {
    const denied = (claims: object) => operator({ ...claims }).then((caller) => upload(caller, pngOf()))
    expect(await denied({ scope: 'messages:read workspaces:write' })).toBe('PermissionDenied')
    expect(await denied({ wid: 'ws_none' })).toBe('NotFound')
    const { messaging } = await operator()
    await expect(messaging.setAgentPicture({ workspaceId: 'ws_other', image: pngOf(), gatewayOrigin })).rejects.toThrow(
      'NotFound',
    )
  })

  it('needs an origin with https, or of this machine', async () => {
    const ada = await operator()
    for (const origin of ['', 'http://chat.example', 'https://chat.example/path', 'javascript:alert(1)', 'null'])
      expect(await upload(ada, pngOf(), origin)).toBe('ValidationFailed /gatewayOrigin format')
    expect(await upload(ada, pngOf(), 'http://localhost:8080')).toMatch(/^http:\/\/localhost:8080\/api\//)
  })

  it('is stored apart for each workspace and operator, and replaces the earlier one', async () => {
    const [ada, bea] = [await operator(), await operator({ sub: 'bea' })]
    const file = pngOf()
    const [first, ofBea] = [await upload(ada, file), await upload(bea, file)]
    expect(ofBea).not.toBe(first)
    const second = await upload(ada, pngOf())
    // Answers that were sent with it still show it.
    expect((await get(first)).status).toBe(200)
    const files = [second]
    for (let count = 0; count < 5; count += 1) files.push(await upload(ada, pngOf()))
    const found = await Promise.all(files.map(async (url) => (await get(url)).status))
    expect(found).toEqual([404, 200, 200, 200, 200, 200])
    expect(await upload(ada, new Uint8Array())).toBe('removed')
    expect((await get(ofBea)).status).toBe(200)
  })

  it('is in the session and in the list of agents of the operator who signs in', async () => {
    const ada = await operator({ sub: 'carla' })
    const avatarUrl = await upload(ada, pngOf())
    const { gatewayToken } = await dataFolderSecrets(stack.dataDir)
    const gateway = createClient(ConsoleService, transportWith(stack.cores[1]!.url, gatewayToken))
    const value = await signWorkspaceSession({
      claims: { wid: stack.demo.workspaceId, sub: 'carla', scope: everyScope },
    })
    const credential = { case: 'workspaceSession' as const, value }
    const { session, sessionSecret } = await gateway.signIn({ credential, displayName: 'Carla' })
    expect(session?.avatarUrl).toBe(avatarUrl)
    const { agents } = await ada.messaging.listAgents({})
    expect(agents.find(({ displayName }) => displayName === 'Carla')?.avatarUrl).toBe(avatarUrl)
    await upload(ada, new Uint8Array())
    expect((await gateway.getConsoleSession({ sessionSecret })).session?.avatarUrl).toBeUndefined()
  })

  it('is served by the other core, and by the cache of the gateway while no core answers', async () => {
    const url = await upload(await operator(), pngOf())
    const cold = await upload(await operator({ sub: 'bea' }), pngOf())
    expect((await get(url)).status).toBe(200)
    await stack.cores[0]!.stop()
    expect((await get(url)).status).toBe(200)
    await until('the other core', async () => (await get(cold)).status === 200)
    await stack.cores[1]!.stop()
    expect((await get(url)).status).toBe(200)
    expect((await get(picturesUrl + 'x'.repeat(43))).status).toBe(503)
    await Promise.all(stack.cores.map((core) => core.start()))
    await until('the cores', async () => (await upload(await operator(), new Uint8Array())) === 'removed')
  })
})

describe('the logo of an installation', () => {
  it('is shown to visitors, replaced and removed, and recorded without its bytes', async () => {
    const { workspaces } = await operator({ sub: 'admin' })
    const { siteKey, workspaceId } = stack.demo
    const visitor = await stack.newVisitor()
    const logoOfVisitors = async () => (await visitor.call('GET', `/config/${siteKey}`)).body.appearance.logoUrl
    const image = pngOf()
    const set = async (file: Uint8Array) => {
      const { installation } = await workspaces.setLogo({ siteKey, image: file, gatewayOrigin })
      const { logoUrl } = installation!.appearance!
      await until('the logo', async () => (await logoOfVisitors()) === logoUrl)
      return logoUrl
    }
    const first = (await set(image))!
    expect((await contentOf(first)).equals(image)).toBe(true)
    expect(await set(pngOf())).not.toBe(first)
    expect(await set(new Uint8Array())).toBeUndefined()
    const { changes } = await workspaces.listPolicyChanges({ workspaceId, target: siteKey })
    expect(changes.slice(0, 3).map(({ action, actor }) => `${action} ${actor}`)).toEqual(Array(3).fill('SetLogo admin'))
    expect(changes.slice(0, 3).map(({ settings }) => settings.map(({ value }) => value))).toEqual([
      ['none'],
      [`${image.length} bytes`],
      [`${image.length} bytes`],
    ])
  })

  it('is stored once if the call is repeated with its key, and stays if the picture is refused', async () => {
    const { workspaces } = await operator()
    const { siteKey } = stack.demo
    const request = { siteKey, image: pngOf(), gatewayOrigin, idempotencyKey: 'logo-1' }
    const [one, again] = [await workspaces.setLogo(request), await workspaces.setLogo(request)]
    expect(again.installation!.appearance!.logoUrl).toBe(one.installation!.appearance!.logoUrl)
    const svg = workspaces.setLogo({ siteKey, image: Buffer.from('<svg/>'), gatewayOrigin })
    await expect(svg).rejects.toThrow('ValidationFailed')
    const elsewhere = await operator({ wid: 'ws_other' })
    await expect(elsewhere.workspaces.setLogo(request)).rejects.toThrow('NotFound')
    const reader = await operator({ scope: 'messages:write workspaces:read' })
    await expect(reader.workspaces.setLogo(request)).rejects.toThrow('PermissionDenied')
    const { installations } = await workspaces.listInstallations({})
    const { appearance } = installations.find(({ publicSiteKey }) => publicSiteKey === siteKey)!
    expect(appearance!.logoUrl).toBe(one.installation!.appearance!.logoUrl)
  })
})
