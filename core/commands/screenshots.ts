import { createHash } from 'node:crypto'
import { type Filter, MongoRuntimeError, ObjectId } from 'mongodb'
import { createJobs } from '../concurrency/job.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { invalid, logFailure, ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { imageSignatureBytes, imageTypes, isImageOfType } from '../pictures/image-model.ts'
import { isIdempotencyKey } from '../rules.ts'
import type { Session, VisitorOperation } from '../sessions/model.ts'
import { oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'
import { requireOwnCommand } from './commands.ts'
import {
  type Command,
  type CommandDocument,
  type CommandState,
  expiringStates,
  stateAt,
  type Transition,
  toCommand,
  type Upload,
  type UploadedScreenshot,
} from './model.ts'

export interface ScreenshotUpload extends VisitorOperation {
  requestId: string
  contentType: string
  /** Length of the file in bytes, if the client announced it. */
  byteLength?: number
}

type Uploaded = Pick<UploadedScreenshot, 'byteLength' | 'sha256'> & { requestId: string; state: CommandState }

const maxUploads = 4

/**
 * Stores a screenshot that the visitor consented to, without buffering it in memory. On return, every byte is
 * durable. A failed upload leaves no data. Errors: those of VisitorAccess.authorize and Idempotency.once,
 * `RouteNotAdvertised`, `CommandNotFound`, `ConsentRequired`, `CommandExpired`, `CommandAlreadyResolved`,
 * `UnsupportedMediaType`, `PayloadTooLarge`, `ValidationFailed` (path ""), and errors that `chunks` throws.
 */
export async function uploadScreenshot(
  core: Core,
  header: ScreenshotUpload,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Repeatable<Uploaded>> {
  const [files, { now }] = [screenshotStoreOf(core), core]
  const { requestId, contentType, idempotencyKey: uploadKey } = header
  const { session, installation } = await visitorAccessOf(core).authorize(header.credentials)
  const { SCREENSHOT_MAX_BYTES: maxBytes } = core.config
  if (!imageTypes.includes(contentType)) throw new ServiceError('UnsupportedMediaType')
  if (!isIdempotencyKey(uploadKey)) throw new ServiceError('IdempotencyKeyInvalid')
  if ((header.byteLength ?? 0) > maxBytes) throw new ServiceError('PayloadTooLarge')
  const { sessionId } = session
  const command = await requireOwnCommand(core, 'screenshot', requestId, sessionId)
  const image = inspect(header, chunks, maxBytes)
  if (command.screenshot?.uploadKey === uploadKey) return repeat(core, header, command, image)
  requireCapability(installation, 'screenshots')
  if (stateAt(command, now()) !== 'granted') throw rejection(core, command)

  const fileId = files.newFileId()
  if (!(await beginUpload(core, requestId, { fileId, startedAt: new Date(now()) }))) {
    throw rejection(core, await requireOwnCommand(core, 'screenshot', requestId, sessionId))
  }
  try {
    await files.write(fileId, requestId, image.chunks)
    // The upload may have taken long, so its session and the capability are checked again.
    requireCapability((await visitorAccessOf(core).authorize(header.credentials)).installation, 'screenshots')
    const { sha256, byteLength } = image.end()
    return await once(core, header, session, sha256, async () => {
      const step = { state: 'uploaded', at: new Date(now()), by: 'visitor' } as const
      const screenshot = { fileId, contentType, byteLength, sha256, uploadKey }
      if (await completeUpload(core, requestId, step, screenshot)) {
        return { requestId, state: step.state, byteLength, sha256 }
      }
      const current = await requireOwnCommand(core, 'screenshot', requestId, sessionId)
      const earlier = earlierResult(current, uploadKey, sha256)
      if (!earlier) throw rejection(core, current)
      return earlier
    })
  } finally {
    const failed = logFailure(core.logger, 'deleting an unused upload failed; the cleanup will retry')
    await deleteUpload(core, requestId, fileId).catch(failed)
  }
}

/**
 * Registers the file of an upload before its first byte is written, so that the cleanup finds it after a
 * crash. Returns false if the command allows no upload now.
 */
export async function beginUpload({ db }: Core, commandId: string, upload: Upload) {
  const { matchedCount } = await db.commands.updateOne(
    {
      _id: commandId,
      state: 'granted',
      expiresAt: { $gt: upload.startedAt },
      [`uploads.${maxUploads - 1}`]: { $exists: false },
    },
    { $push: { uploads: upload } },
  )
  return matchedCount === 1
}

/** Makes a file the screenshot. Returns false if there is no consent or the file was abandoned. */
export async function completeUpload(
  { db }: Core,
  commandId: string,
  step: Transition,
  screenshot: UploadedScreenshot,
) {
  const { fileId } = screenshot
  const { matchedCount } = await db.commands.updateOne(
    {
      _id: commandId,
      state: 'granted',
      expiresAt: { $gt: step.at },
      uploads: { $elemMatch: { fileId, abandoned: { $exists: false } } },
    },
    { $set: { state: step.state, screenshot }, $push: { transitions: step }, $pull: { uploads: { fileId } } },
  )
  return matchedCount === 1
}

/** Errors: `NotFound` if the screenshot was not uploaded yet. */
export function openScreenshot(
  core: Core,
  { state, screenshot }: Command,
): { screenshot: UploadedScreenshot; chunks: AsyncIterable<Uint8Array> } {
  if (state !== 'uploaded' || !screenshot) throw new ServiceError('NotFound')
  return { screenshot, chunks: screenshotStoreOf(core).read(screenshot.fileId) }
}

function rejection({ now }: Core, command: Command) {
  const state = stateAt(command, now())
  if (state === 'granted') return new ServiceError('OperationInProgress', { retryAfter: 1 })
  if (state === 'expired') return new ServiceError('CommandExpired')
  if (state === 'uploaded') return new ServiceError('CommandAlreadyResolved')
  return new ServiceError('ConsentRequired')
}

function earlierResult(command: Command, key: string, sha256: string): Uploaded | undefined {
  const { state, screenshot } = command
  if (state !== 'uploaded' || screenshot?.uploadKey !== key || screenshot.sha256 !== sha256) return undefined
  return { requestId: command.commandId, state, byteLength: screenshot.byteLength, sha256 }
}

const once = (
  core: Core,
  { requestId, idempotencyKey }: ScreenshotUpload,
  session: Pick<Session, 'sessionId'>,
  sha256: string,
  run: () => Promise<Uploaded>,
) => oncePerSession(core, 'POST /commands/screenshots/upload', session, idempotencyKey, { requestId, sha256 }, run)

/** Compares the bytes of a repeated upload with those of the first one, and stores nothing. */
async function repeat(core: Core, header: ScreenshotUpload, command: Command, image: ReturnType<typeof inspect>) {
  for await (const _ of image.chunks);
  const { sha256 } = image.end()
  const { content } = await once(core, header, command, sha256, async () => {
    const earlier = earlierResult(command, header.idempotencyKey, sha256)
    if (!earlier) throw new ServiceError('IdempotencyConflict')
    return earlier
  })
  return { content, replayed: true }
}

/** Deletes the file of an upload, unless it became the screenshot of the command. */
async function deleteUpload(core: Core, commandId: string, fileId: string) {
  if (!(await abandonUpload(core, commandId, fileId))) return
  await screenshotStoreOf(core).delete(fileId)
  await core.db.commands.updateOne({ _id: commandId }, { $pull: { uploads: { fileId } } })
}

/** Marks a file as abandoned. Returns false if it is the screenshot of the command, or is unknown. */
export async function abandonUpload({ db }: Core, commandId: string, fileId: string) {
  const { matchedCount } = await db.commands.updateOne(
    { _id: commandId, 'uploads.fileId': fileId },
    { $set: { 'uploads.$.abandoned': true } },
  )
  return matchedCount === 1
}

/**
 * Checks the type and length of an upload while its chunks are read. `end` returns the hash and the length.
 * Errors: `PayloadTooLarge`; `ValidationFailed` with the rule `contentType` if the first bytes do not match
 * the type, or `contentLength` if the length differs from the announced one.
 */
function inspect(header: ScreenshotUpload, source: AsyncIterable<Uint8Array>, max: number) {
  const { contentType, byteLength: announced } = header
  const hash = createHash('sha256')
  let beginning: Uint8Array = new Uint8Array()
  let byteLength = 0

  function checkBeginning() {
    if (!isImageOfType(contentType, beginning)) throw invalid('', 'contentType')
  }

  async function* inspected() {
    for await (const chunk of source) {
      byteLength += chunk.length
      if (byteLength > max) throw new ServiceError('PayloadTooLarge')
      if (beginning.length < imageSignatureBytes) {
        beginning = Buffer.concat([beginning, chunk.subarray(0, imageSignatureBytes - beginning.length)])
        if (beginning.length === imageSignatureBytes) checkBeginning()
      }
      hash.update(chunk)
      yield chunk
    }
    checkBeginning()
    if (announced !== undefined && announced !== byteLength) throw invalid('', 'contentLength')
  }

  return { chunks: inspected(), end: () => ({ sha256: hash.digest('hex'), byteLength }) }
}

/** Stores the bytes of screenshots. The caller gets the id of a file before it writes the file. */
export const screenshotStoreOf = perCore(({ database: { screenshots: bucket } }) => ({
  newFileId: () => new ObjectId().toHexString(),

  /** Resolves when every byte is durable. After a failure, the caller must delete the file. */
  async write(fileId: string, name: string, chunks: AsyncIterable<Uint8Array>) {
    const stream = bucket.openUploadStreamWithId(new ObjectId(fileId), name)
    // Without a listener, the error would end the process. The failing write reports it too.
    stream.on('error', () => {})
    try {
      // Each write is awaited, so that none stores data after the caller has deleted the file.
      for await (const chunk of chunks) await settled((done) => stream.write(chunk, done))
      await settled((done) => stream.end(done))
    } catch (error) {
      stream.destroy()
      throw error
    }
  },

  read: (fileId: string): AsyncIterable<Uint8Array> => bucket.openDownloadStream(new ObjectId(fileId)),

  /** Deletes a file, also one that is not completely written. */
  async delete(fileId: string) {
    try {
      await bucket.delete(new ObjectId(fileId))
    } catch (error) {
      // An unfinished file has no file document, but the driver has deleted its chunks.
      if (!(error instanceof MongoRuntimeError && error.message.startsWith('File not found'))) throw error
    }
  },
}))

function settled(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())))
}

const cleanupEveryMs = 60_000
/** Age at which an unfinished upload is deleted. No upload takes so long, so its process must have died. */
const uploadsDeadAfterMs = 600_000
const batch = 100

export const commandJobs = (core: Core) =>
  createJobs(core, { 'clean up commands': [cleanupEveryMs, () => cleanUpCommands(core)] })

/**
 * Expires commands whose time limit has passed, deletes abandoned uploads, and deletes commands after
 * their retention time. Several processes may run it at the same time.
 */
export async function cleanUpCommands(core: Core) {
  const { commands } = core.db
  const time = dateOf(core)
  const dead = dateOf(core, -uploadsDeadAfterMs)
  const step = [{ state: 'expired', at: '$expiresAt', by: 'clock' }]
  await commands.updateMany({ state: { $in: expiringStates }, expiresAt: { $lte: time } }, [
    { $set: { state: 'expired', transitions: { $concatArrays: ['$transitions', step] } } },
  ])
  await forEachInBatches(core, { 'uploads.startedAt': { $lte: dead } }, (command) =>
    deleteLeftovers(core, command, dead),
  )
  await forEachInBatches(core, { deleteAt: { $lte: time } }, async (command) => {
    await deleteLeftovers(core, command, time)
    if (command.screenshot) await screenshotStoreOf(core).delete(command.screenshot.fileId)
    await commands.deleteOne({ _id: command.commandId })
  })
}

async function deleteLeftovers(core: Core, { commandId, uploads }: Command, startedBefore: Date) {
  for (const { fileId, startedAt } of uploads)
    if (startedAt <= startedBefore) await deleteUpload(core, commandId, fileId)
}

async function forEachInBatches(
  { db }: Core,
  of: Filter<CommandDocument>,
  each: (command: Command) => Promise<unknown>,
) {
  for (;;) {
    const found = await db.commands.find(of, { limit: batch }).toArray()
    for (const command of found) await each(toCommand(command))
    if (found.length < batch) return
  }
}
