import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import { type CommandProgress, type CommandState, expiringStates, type Transition } from './command-states.ts'

/** An uploaded screenshot; its bytes are in the screenshot store. */
export interface UploadedScreenshot {
  fileId: string
  contentType: string
  byteLength: number
  /** Lower-case hex. */
  sha256: string
  /** Idempotency key of the upload. */
  uploadKey: string
}

/** A command to a page, with its requester, purpose and all transitions. */
export interface Command extends CommandProgress {
  /** For a screenshot, this is the public `requestId`. */
  commandId: string
  workspaceId: string
  sessionId: string
  conversationId: string
  url?: string
  label?: string
  purpose?: string
  /** Subject of the service token. */
  requestedBy: string
  /** The operator's operation; unique in the session. */
  operationId: string
  inputHash: string
  requestedAt: Date
  deleteAt: Date
  screenshot?: UploadedScreenshot
  /** Files that are being written or were abandoned. None of them is the screenshot. */
  uploads: Upload[]
}

export interface Upload {
  fileId: string
  startedAt: Date
  /** It will be deleted and can no longer become the screenshot. */
  abandoned?: true
}

export type CommandDocument = Omit<Command, 'commandId'> & { _id: string }

export interface CommandStore {
  /** Returns false if the session has a command with this operation. */
  insert(command: Command): Promise<boolean>
  find(commandId: string): Promise<Command | undefined>
  findOperation(sessionId: string, operationId: string): Promise<Command | undefined>
  /** Latest first. */
  list(sessionId: string, limit: number): Promise<Command[]>
  /** Takes a step; returns undefined if the state is no longer `from`. */
  move(commandId: string, from: CommandState, step: Transition, expiresAt?: Date): Promise<Command | undefined>

  /**
   * Registers a file before its first byte is written, so that cleanup finds it. Returns false if
   * no upload is allowed.
   */
  beginUpload(commandId: string, upload: Upload, maxUploads: number): Promise<boolean>
  /** Makes a file the screenshot, if consent is still granted and the file was not abandoned. */
  completeUpload(commandId: string, step: Transition, screenshot: UploadedScreenshot): Promise<Command | undefined>
  /** Marks a file as abandoned; returns false if it is the screenshot or unknown. */
  abandonUpload(commandId: string, fileId: string): Promise<boolean>
  /** Removes the record of a deleted file. */
  forgetUpload(commandId: string, fileId: string): Promise<void>

  /** Stores the expiry of expired commands. */
  expire(now: Date): Promise<void>
  /** Commands with an upload that began before the given time. */
  withOldUploads(before: Date, limit: number): Promise<Command[]>
  dueForDeletion(now: Date, limit: number): Promise<Command[]>
  remove(commandId: string): Promise<void>
}

export function createCommandStore({ commands }: { commands: Collection<CommandDocument> }): CommandStore {
  return {
    async insert({ commandId, ...rest }) {
      try {
        await commands.insertOne({ _id: commandId, ...rest })
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async find(commandId) {
      const found = await commands.findOne({ _id: commandId })
      return found ? toCommand(found) : undefined
    },

    async findOperation(sessionId, operationId) {
      const found = await commands.findOne({ sessionId, operationId })
      return found ? toCommand(found) : undefined
    },

    async list(sessionId, limit) {
      const found = commands.find({ sessionId }).sort({ requestedAt: -1, _id: -1 }).limit(limit)
      return (await found.toArray()).map(toCommand)
    },

    async move(commandId, from, step, expiresAt) {
      const moved = await commands.findOneAndUpdate(
        { _id: commandId, state: from },
        {
          $set: { state: step.state, ...(expiresAt === undefined ? {} : { expiresAt }) },
          $push: { transitions: step },
        },
        { returnDocument: 'after' },
      )
      return moved ? toCommand(moved) : undefined
    },

    async beginUpload(commandId, upload, maxUploads) {
      const { matchedCount } = await commands.updateOne(
        {
          _id: commandId,
          state: 'granted',
          expiresAt: { $gt: upload.startedAt },
          [`uploads.${maxUploads - 1}`]: { $exists: false },
        },
        { $push: { uploads: upload } },
      )
      return matchedCount === 1
    },

    async completeUpload(commandId, step, screenshot) {
      const { fileId } = screenshot
      const completed = await commands.findOneAndUpdate(
        {
          _id: commandId,
          state: 'granted',
          expiresAt: { $gt: step.at },
          uploads: { $elemMatch: { fileId, abandoned: { $exists: false } } },
        },
        { $set: { state: step.state, screenshot }, $push: { transitions: step }, $pull: { uploads: { fileId } } },
        { returnDocument: 'after' },
      )
      return completed ? toCommand(completed) : undefined
    },

    async abandonUpload(commandId, fileId) {
      const { matchedCount } = await commands.updateOne(
        { _id: commandId, 'uploads.fileId': fileId },
        { $set: { 'uploads.$.abandoned': true } },
      )
      return matchedCount === 1
    },

    async forgetUpload(commandId, fileId) {
      await commands.updateOne({ _id: commandId }, { $pull: { uploads: { fileId } } })
    },

    async expire(now) {
      const step = [{ state: 'expired', at: '$expiresAt', by: 'clock' }]
      await commands.updateMany({ state: { $in: expiringStates }, expiresAt: { $lte: now } }, [
        { $set: { state: 'expired', transitions: { $concatArrays: ['$transitions', step] } } },
      ])
    },

    async withOldUploads(before, limit) {
      return (
        await commands
          .find({ 'uploads.startedAt': { $lte: before } })
          .limit(limit)
          .toArray()
      ).map(toCommand)
    },

    async dueForDeletion(now, limit) {
      return (
        await commands
          .find({ deleteAt: { $lte: now } })
          .limit(limit)
          .toArray()
      ).map(toCommand)
    },

    async remove(commandId) {
      await commands.deleteOne({ _id: commandId })
    },
  }
}

const toCommand = ({ _id, ...rest }: CommandDocument): Command => ({ commandId: _id, ...rest })
