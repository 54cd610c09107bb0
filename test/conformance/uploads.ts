import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { ConnectError } from '@connectrpc/connect'
import { MongoClient } from 'mongodb'
import { afterAll, expect } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { imageOf } from '../support/images.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE, bearer } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const maxBytes = 5 * 1024 * 1024

/** Tests of contract section 3: commands as operators see them, and stored uploads. */
export function uploadRules(suite: () => Suite, database: TestDatabase): void {
  let mongo: MongoClient | undefined
  afterAll(() => mongo?.close())
  const commands = () => suite().roomy.operator.commands

  async function grantedScreenshot(visitor: Visitor): Promise<string> {
    const { sessionId } = visitor.session
    const { command } = await commands().requestScreenshot({ sessionId, purpose: 'To see it' })
    const requestId = command!.commandId
    const path = `/commands/screenshots/${requestId}/acknowledgements`
    const body = { consent: 'granted' }
    const { status } = await suite().roomy.client.call('POST', path, { headers: bearer(visitor), body })
    expect(status).toBe(200)
    return requestId
  }

  const upload = (visitor: Visitor, requestId: string, body: Uint8Array, gateway = 0) =>
    suite().roomy.client.call('POST', `/commands/screenshots/${requestId}/upload`, {
      headers: { ...bearer(visitor), 'content-type': 'image/png' },
      body,
      via: suite().roomy.stack.gateways[gateway]!.url,
    })

  /** Starts an upload whose body the test writes in parts. */
  function startUpload(visitor: Visitor, requestId: string, headers: Record<string, string>) {
    const { origin } = suite().roomy.stack.demo
    const url = `${suite().roomy.stack.gateways[0]!.url}${BASE}/commands/screenshots/${requestId}/upload`
    const fixed = { origin, 'x-service-widget-version': '1.0', 'idempotency-key': randomUUID() }
    return request(url, {
      method: 'POST',
      headers: { ...fixed, ...bearer(visitor), 'content-type': 'image/png', ...headers },
    })
  }

  async function download(commandId: string) {
    const chunks: Uint8Array[] = []
    let header: { contentType: string; sha256: string } | undefined
    for await (const { part } of commands().getScreenshot({ commandId })) {
      if (part.case === 'header') header = part.value
      if (part.case === 'chunk') chunks.push(part.value)
    }
    return { bytes: Buffer.concat(chunks), contentType: header!.contentType, sha256: header!.sha256 }
  }

  /** Counts stored files, chunks without a file, and registered uploads of one screenshot. */
  async function storedOf(requestId: string) {
    mongo ??= new MongoClient(database.uri)
    const db = mongo.db(database.name)
    const command = await db.collection<{ _id: string; uploads: unknown[] }>('commands').findOne({ _id: requestId })
    const files = await db.collection('screenshots.files').find().toArray()
    return {
      files: files.filter(({ filename }) => filename === requestId).length,
      looseChunks: await db
        .collection('screenshots.chunks')
        .countDocuments({ files_id: { $nin: files.map(({ _id }) => _id) } }),
      uploads: command!.uploads.length,
    }
  }

  const nothing = { files: 0, looseChunks: 0, uploads: 0 }

  rule(
    'C3.29',
    async () => {
      const visitor = await suite().roomy.client.visitor()
      const requestId = await grantedScreenshot(visitor)
      const bytes = imageOf('image/png', maxBytes)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      expect((await upload(visitor, requestId, bytes)).status).toBe(201)
      const { bytes: downloaded, ...facts } = await download(requestId)
      expect(downloaded.equals(bytes)).toBe(true)
      expect(facts).toEqual({ contentType: 'image/png', sha256 })
      const { command } = await commands().getCommand({ commandId: requestId })
      expect(command).toMatchObject({ state: 'uploaded', outcome: 'granted', byteLength: maxBytes, sha256 })
      expect(command!.transitions.map(({ state, by }) => `${state} by ${by}`)).toEqual([
        'requested by demo',
        'granted by visitor',
        'uploaded by visitor',
      ])
      const listed = await commands().listCommands({ sessionId: visitor.session.sessionId })
      expect(listed.commands.map(({ commandId }) => commandId)).toEqual([requestId])
    },
    'operators download the same bytes and see who did what',
  )

  rule(
    'C3.30',
    async () => {
      const visitor = await suite().roomy.client.visitor()
      const requestId = await grantedScreenshot(visitor)
      const images = [0, 1].map(() => imageOf('image/png', 2_000_000))
      const answers = await Promise.all(images.map((bytes, index) => upload(visitor, requestId, bytes, index)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
      const winner = answers.findIndex(({ status }) => status === 201)
      expect((await download(requestId)).bytes.equals(images[winner]!)).toBe(true)
      expect(await storedOf(requestId)).toMatchObject({ files: 1, uploads: 0 })
    },
    'one of two concurrent uploads is kept',
  )

  rule(
    'C3.29',
    async () => {
      const visitor = await suite().roomy.client.visitor()
      const requestId = await grantedScreenshot(visitor)
      for (const bytes of [Buffer.from('<!doctype html>'), Buffer.alloc(0)])
        expect((await upload(visitor, requestId, bytes)).body.issues).toEqual([{ path: '', rule: 'contentType' }])
      const tooLarge = startUpload(visitor, requestId, { 'transfer-encoding': 'chunked' })
      tooLarge.end(imageOf('image/png', maxBytes + 1))
      expect((await once(tooLarge, 'response'))[0].statusCode).toBe(413)
      for (const [name, value] of [
        ['content-length', '2000000'],
        ['transfer-encoding', 'chunked'],
      ] as const) {
        const aborted = startUpload(visitor, requestId, { [name]: value })
        aborted.on('error', () => {})
        aborted.write(imageOf('image/png', 1_000_000))
        await until('the first chunks', async () => (await storedOf(requestId)).looseChunks >= 2)
        aborted.destroy()
        await until('the clean-up', async () => (await storedOf(requestId)).uploads === 0)
      }
      expect(await storedOf(requestId)).toEqual(nothing)
      expect((await commands().getCommand({ commandId: requestId })).command?.state).toBe('granted')
      expect((await upload(visitor, requestId, imageOf('image/png', 1_000_000))).status).toBe(201)
    },
    'rejected and aborted uploads leave no bytes, and a later upload is accepted',
  )

  rule(
    'C3.12',
    async () => {
      const { operator, client, stack } = suite().roomy
      const codeOf = (call: Promise<unknown>) =>
        call.then(
          () => 'none',
          (error) => ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.code,
        )
      const { connection } = await operator.workspaces.createConnection({
        workspaceId: stack.demo.workspaceId,
        name: 'Site',
      })
      const { installation } = await operator.workspaces.createInstallation({
        connectionId: connection!.connectionId,
        origins: [stack.demo.origin],
        capabilities: { navigation: false, screenshots: false },
      })
      const url = `${stack.demo.origin}/`
      const { session } = await stack.newVisitor({ siteKey: installation!.publicSiteKey })
      const { sessionId } = session
      expect(await codeOf(commands().requestNavigation({ sessionId, url }))).toBe('RouteNotAdvertised')
      expect(await codeOf(commands().requestScreenshot({ sessionId }))).toBe('RouteNotAdvertised')
      const revoked = (await client.visitor()).session
      await operator.sessions.revokeSession({ sessionId: revoked.sessionId })
      expect(await codeOf(commands().requestNavigation({ sessionId: revoked.sessionId, url }))).toBe('SessionRevoked')
      expect(await codeOf(commands().requestNavigation({ sessionId: 'ses_none', url }))).toBe('NotFound')
    },
    'operators cannot request what a session does not allow',
  )
}
