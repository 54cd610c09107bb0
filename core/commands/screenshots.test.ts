import { describe, expect, it } from 'vitest'
import { imageOf } from '../../test/support/images.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import type { Session } from '../sessions/model.ts'
import { createTestCommands } from '../test/commands.ts'
import { openTestDatabase } from '../test/open-test-database.ts'

const dayMs = 86_400_000
const database = await openTestDatabase(testDatabase())
const core = createTestCommands(database)

async function granted(): Promise<{ session: Session; requestId: string }> {
  const session = core.newSession()
  const { content } = await core.commands.requestScreenshot({ sessionId: session.sessionId }, { subject: 'desk' })
  const requestId = content.commandId
  const credentials = core.credentials(session)
  await core.decisions.acknowledgeScreenshot({
    credentials,
    requestId,
    consent: 'granted',
    idempotencyKey: core.newKey(),
  })
  return { session, requestId }
}

function upload(
  { session, requestId }: { session: Session; requestId: string },
  chunks: AsyncIterable<Uint8Array>,
  key = core.newKey(),
) {
  const credentials = core.credentials(session)
  return core.screenshots.upload({ credentials, requestId, contentType: 'image/png', idempotencyKey: key }, chunks)
}

async function* inChunks(bytes: Buffer, size: number, end?: () => Promise<unknown>) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
  await end?.()
}

async function bytesOf(requestId: string): Promise<Buffer> {
  const { chunks } = core.screenshots.open(await core.commands.find(requestId))
  const parts: Uint8Array[] = []
  for await (const part of chunks) parts.push(part)
  return Buffer.concat(parts)
}

describe('uploads', () => {
  it.each([1, 7, 64_000])('an upload in chunks of %i bytes is stored byte for byte', async (size) => {
    const target = await granted()
    const bytes = imageOf('image/png', size === 1 ? 100 : 600_001)
    const { content } = await upload(target, inChunks(bytes, size))
    expect(content.byteLength).toBe(bytes.length)
    expect((await bytesOf(target.requestId)).equals(bytes)).toBe(true)
  })

  it('an upload that ends after its time limit is rejected, and its bytes are deleted', async () => {
    const target = await granted()
    const late = upload(
      target,
      inChunks(imageOf('image/png', 600_000), 64_000, async () => {
        core.time.now += 120_000
      }),
    )
    await expect(late).rejects.toMatchObject({ code: 'CommandExpired' })
    expect((await core.commands.find(target.requestId)).uploads).toEqual([])
    await expect(bytesOf(target.requestId)).rejects.toMatchObject({ code: 'NotFound' })
  })

  it('an upload is rejected if its idempotency key was used for another screenshot of the session', async () => {
    const first = await granted()
    const { session } = first
    const { content } = await core.commands.requestScreenshot({ sessionId: session.sessionId }, { subject: 'desk' })
    const second = { session, requestId: content.commandId }
    const credentials = core.credentials(session)
    await core.decisions.acknowledgeScreenshot({
      credentials,
      requestId: second.requestId,
      consent: 'granted',
      idempotencyKey: core.newKey(),
    })
    const bytes = imageOf('image/png', 100)
    await upload(first, inChunks(bytes, 50), 'one-key')
    await expect(upload(second, inChunks(bytes, 50), 'one-key')).rejects.toMatchObject({
      code: 'IdempotencyConflict',
    })
  })

  it('an upload is rejected while four other uploads of the same screenshot are running', async () => {
    const target = await granted()
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const bytes = imageOf('image/png', 100)
    const running = [0, 1, 2, 3].map(() =>
      upload(
        target,
        inChunks(bytes, 100, () => go),
      ),
    )
    await expect.poll(async () => (await core.commands.find(target.requestId)).uploads.length).toBe(4)
    await expect(upload(target, inChunks(bytes, 100))).rejects.toMatchObject({ code: 'OperationInProgress' })
    resolve()
    const outcomes = await Promise.allSettled(running)
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected'])
  })

  it('an abandoned upload cannot be completed, but another upload of the screenshot can', async () => {
    const { requestId } = await granted()
    const [fileId, other] = [core.files.newFileId(), core.files.newFileId()]
    const startedAt = new Date(core.time.now)
    for (const each of [fileId, other]) await core.store.beginUpload(requestId, { fileId: each, startedAt })
    expect(await core.store.abandonUpload(requestId, fileId)).toBe(true)
    const complete = (named: string) => {
      const screenshot = { fileId: named, contentType: 'image/png', byteLength: 1, sha256: '', uploadKey: 'k' }
      return core.store.completeUpload(requestId, { state: 'uploaded', at: startedAt, by: 'visitor' }, screenshot)
    }
    expect(await complete(fileId)).toBe(false)
    expect(await complete(other)).toBe(true)
    expect((await core.commands.find(requestId)).state).toBe('uploaded')
    expect(await core.store.abandonUpload(requestId, other)).toBe(false)
  })

  it('an unfinished upload of a dead process is deleted by the cleanup job after ten minutes', async () => {
    const target = await granted()
    const fileId = core.files.newFileId()
    await core.store.beginUpload(target.requestId, { fileId, startedAt: new Date(core.time.now) })
    await core.files.write(fileId, target.requestId, inChunks(imageOf('image/png', 600_000), 64_000))
    await core.cleanup.run()
    expect((await core.commands.find(target.requestId)).uploads).toHaveLength(1)
    core.time.now += 600_000
    await core.cleanup.run()
    expect((await core.commands.find(target.requestId)).uploads).toEqual([])
    expect(await database.screenshots.find({ filename: target.requestId }).toArray()).toEqual([])
  })
})

describe('the cleanup job', () => {
  it('the cleanup job deletes commands whose retention has passed, with their screenshots, and keeps newer commands', async () => {
    const old = await granted()
    await upload(old, inChunks(imageOf('image/png', 600_000), 64_000))
    core.time.now += 29 * dayMs
    const young = await granted()
    await upload(young, inChunks(imageOf('image/png', 100), 64_000))
    core.time.now += dayMs
    await core.cleanup.run()
    await expect(core.commands.find(old.requestId)).rejects.toMatchObject({ code: 'CommandNotFound' })
    expect(await database.screenshots.find({ filename: old.requestId }).toArray()).toEqual([])
    expect(await bytesOf(young.requestId)).toHaveLength(100)
  })
})
