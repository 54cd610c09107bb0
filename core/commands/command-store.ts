import type { Collection } from 'mongodb'
import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import {
  type Command,
  type CommandState,
  expiringStates,
  type Transition,
  type Upload,
  type UploadedScreenshot,
} from './model.ts'

export type CommandDocument = Omit<Command, 'commandId'> & { _id: string }

export interface CommandStore {
  /**
   * Inserts a command. Returns false if the session already has a command with the same
   * `operationId`.
   */
  insert(command: Command): Promise<boolean>
  find(commandId: string): Promise<Command | undefined>
  findOperation(sessionId: string, operationId: string): Promise<Command | undefined>
  /** Returns commands of a session, latest first. */
  list(sessionId: string, limit: number): Promise<Command[]>
  /** Changes the state of a command. Returns undefined if its state is no longer `from`. */
  move(commandId: string, from: CommandState, step: Transition, expiresAt?: Date): Promise<Command | undefined>

  /**
   * Registers the file of an upload before its first byte is written. After a crash, the cleanup
   * job finds the file by this record. Returns false if the command allows no upload now.
   */
  beginUpload(commandId: string, upload: Upload, maxUploads: number): Promise<boolean>
  /**
   * Makes a file the screenshot of the command. Returns undefined if consent is no longer granted
   * or the file was abandoned.
   */
  completeUpload(commandId: string, step: Transition, screenshot: UploadedScreenshot): Promise<Command | undefined>
  /**
   * Marks the file of an upload as abandoned. Returns false if the file is the screenshot of the
   * command, or is unknown.
   */
  abandonUpload(commandId: string, fileId: string): Promise<boolean>
  /** Removes the record of a file that was deleted. */
  forgetUpload(commandId: string, fileId: string): Promise<void>

  /** Sets the state `expired` on commands whose time limit has passed. */
  expire(now: Date): Promise<void>
  /** Returns commands with an upload that began before the given time. */
  withOldUploads(before: Date, limit: number): Promise<Command[]>
  dueForDeletion(now: Date, limit: number): Promise<Command[]>
  remove(commandId: string): Promise<void>
}

export function createCommandStore({ commands }: { commands: Collection<CommandDocument> }): CommandStore {
  return {
    insert: ({ commandId, ...rest }) => insertOnce(commands, { _id: commandId, ...rest }),

    find: createBatchLoader(async (commandIds) => {
      const found = await commands.find({ _id: { $in: commandIds } }).toArray()
      return byKey(found.map(toCommand), ({ commandId }) => commandId)
    }),

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
          $set: { state: step.state, expiresAt },
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
