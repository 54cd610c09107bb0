import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import { imageSignatureBytes, imageTypes, isImageOfType } from '../pictures/image-model.ts'
import { isIdempotencyKey } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import { requireOwnCommand } from './command-decisions.ts'
import type { CommandStore } from './command-store.ts'
import { type Command, type CommandState, stateAt, type UploadedScreenshot } from './model.ts'
import type { ScreenshotStore } from './screenshot-store.ts'

export interface ScreenshotUpload {
  credentials: VisitorCredentials
  requestId: string
  contentType: string
  idempotencyKey: string
  /** Length of the file in bytes, if the client announced it. */
  byteLength?: number
}

export interface Uploaded {
  requestId: string
  state: CommandState
  byteLength: number
  sha256: string
}

interface ScreenshotSettings {
  maxBytes: number
  /** Maximum number of concurrent uploads of one screenshot. */
  maxUploads: number
  /** Time in seconds during which a repeated upload returns the first result. */
  idempotencyRetention: number
}

export interface Screenshots {
  /**
   * Stores a screenshot that the visitor consented to, without buffering it in memory. When the
   * call resolves, every byte is durable. A failed upload leaves no data. Errors: those of
   * VisitorAccess.authorize and Idempotency.once, `RouteNotAdvertised`, `CommandNotFound`,
   * `ConsentRequired`, `CommandExpired`, `CommandAlreadyResolved`, `UnsupportedMediaType`, `PayloadTooLarge`,
   * `ValidationFailed` (path ""), and errors that `chunks` throws.
   */
  upload(header: ScreenshotUpload, chunks: AsyncIterable<Uint8Array>): Promise<Repeatable<Uploaded>>
  /** Returns the screenshot of a command. Errors: `NotFound` if it was not uploaded yet. */
  open(command: Command): { screenshot: UploadedScreenshot; chunks: AsyncIterable<Uint8Array> }
}

interface ScreenshotsDependencies {
  store: CommandStore
  files: ScreenshotStore
  access: VisitorAccess
  idempotency: Idempotency
  settings: ScreenshotSettings
  logger: Logger
  now: () => number
}

/**
 * Stores screenshots of a visitor's page. Visitors upload them with consent, and operators read
 * them (contract, section 3).
 */
export function createScreenshots(dependencies: ScreenshotsDependencies): Screenshots {
  const { store, files, access, idempotency, settings, logger, now } = dependencies

  /** Returns the reason why a screenshot cannot be uploaded now. */
  function rejection(command: Command): ServiceError {
    const state = stateAt(command, now())
    if (state === 'granted') return new ServiceError(ErrorCode.OPERATION_IN_PROGRESS, { retryAfter: 1 })
    if (state === 'expired') return new ServiceError(ErrorCode.COMMAND_EXPIRED)
    if (state === 'uploaded') return new ServiceError(ErrorCode.COMMAND_ALREADY_RESOLVED)
    return new ServiceError(ErrorCode.CONSENT_REQUIRED)
  }

  /** Returns the result of an earlier identical upload. */
  function earlierResult(command: Command, key: string, sha256: string): Uploaded | undefined {
    const { state, screenshot } = command
    if (state !== 'uploaded' || screenshot?.uploadKey !== key || screenshot.sha256 !== sha256) return undefined
    return { requestId: command.commandId, state, byteLength: screenshot.byteLength, sha256 }
  }

  function once(header: ScreenshotUpload, sessionId: string, sha256: string, run: () => Promise<Uploaded>) {
    const { requestId, idempotencyKey: key } = header
    const scope = ['POST /commands/screenshots/upload', sessionId]
    const keptFor = settings.idempotencyRetention
    return idempotency.once({ scope, sessionId, key, input: { requestId, sha256 }, keptFor, run })
  }

  /**
   * Handles a repeated upload: compares its bytes with those of the first upload and stores
   * nothing.
   */
  async function repeat(header: ScreenshotUpload, command: Command, image: ReturnType<typeof inspect>) {
    for await (const _ of image.chunks);
    const { sha256 } = image.end()
    const { result } = await once(header, command.sessionId, sha256, async () => {
      const earlier = earlierResult(command, header.idempotencyKey, sha256)
      if (!earlier) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      return earlier
    })
    return { content: result, replayed: true }
  }

  /**
   * Deletes the file of an upload, unless it became the screenshot of the command. If the deletion
   * fails, the cleanup job retries it.
   */
  async function discard(commandId: string, fileId: string) {
    try {
      if (!(await store.abandonUpload(commandId, fileId))) return
      await files.delete(fileId)
      await store.forgetUpload(commandId, fileId)
    } catch (error) {
      logger.warn({ reason: (error as Error).name }, 'deleting an unused upload failed; the cleanup will retry')
    }
  }

  return {
    async upload(header, chunks) {
      const { requestId, contentType, idempotencyKey: uploadKey } = header
      const { session, installation } = await access.authorize(header.credentials)
      if (!imageTypes.includes(contentType)) throw new ServiceError(ErrorCode.UNSUPPORTED_MEDIA_TYPE)
      if (!isIdempotencyKey(uploadKey)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      if ((header.byteLength ?? 0) > settings.maxBytes) throw new ServiceError(ErrorCode.PAYLOAD_TOO_LARGE)
      const { sessionId } = session
      const command = await requireOwnCommand(store, 'screenshot', requestId, sessionId)
      const image = inspect(header, chunks, settings.maxBytes)
      if (command.screenshot?.uploadKey === uploadKey) return repeat(header, command, image)
      requireCapability(installation, 'screenshots')
      if (stateAt(command, now()) !== 'granted') throw rejection(command)

      const fileId = files.newFileId()
      if (!(await store.beginUpload(requestId, { fileId, startedAt: new Date(now()) }, settings.maxUploads))) {
        throw rejection(await requireOwnCommand(store, 'screenshot', requestId, sessionId))
      }
      try {
        await files.write(fileId, requestId, image.chunks)
        // The upload may have taken long, so its session and the capability are checked again.
        requireCapability((await access.authorize(header.credentials)).installation, 'screenshots')
        const { sha256, byteLength } = image.end()
        const { result, replayed } = await once(header, sessionId, sha256, async () => {
          const step = { state: 'uploaded', at: new Date(now()), by: 'visitor' } as const
          const screenshot = { fileId, contentType, byteLength, sha256, uploadKey }
          if (await store.completeUpload(requestId, step, screenshot)) {
            return { requestId, state: step.state, byteLength, sha256 }
          }
          const current = await requireOwnCommand(store, 'screenshot', requestId, sessionId)
          const earlier = earlierResult(current, uploadKey, sha256)
          if (!earlier) throw rejection(current)
          return earlier
        })
        return { content: result, replayed }
      } finally {
        await discard(requestId, fileId)
      }
    },

    open({ state, screenshot }) {
      if (state !== 'uploaded' || !screenshot) throw new ServiceError(ErrorCode.NOT_FOUND)
      return { screenshot, chunks: files.read(screenshot.fileId) }
    },
  }
}

/**
 * Returns the chunks of an upload, and checks its type and length while they are read. `end`
 * returns the hash and the length. Errors: `PayloadTooLarge`; `ValidationFailed` with the rule
 * `contentType` if the first bytes do not match the type, or `contentLength` if the length differs
 * from the announced one.
 */
function inspect(
  { contentType, byteLength: announced }: ScreenshotUpload,
  source: AsyncIterable<Uint8Array>,
  max: number,
) {
  const hash = createHash('sha256')
  let beginning: Uint8Array = new Uint8Array()
  let byteLength = 0

  function checkBeginning() {
    if (!isImageOfType(contentType, beginning)) throw invalid('', 'contentType')
  }

  async function* inspected() {
    for await (const chunk of source) {
      byteLength += chunk.length
      if (byteLength > max) throw new ServiceError(ErrorCode.PAYLOAD_TOO_LARGE)
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
