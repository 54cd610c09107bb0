import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { perCore } from '../core.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import type { Command, CommandState, Transition, Upload, UploadedScreenshot } from './model.ts'

export type CommandDocument = Omit<Command, 'commandId'> & { _id: string }

export const commandStoreOf = perCore(({ db: { commands } }) => ({
  /** Returns false if the session already has a command with the same `operationId`. */
  insert: ({ commandId, ...rest }: Command) => insertOnce(commands, { _id: commandId, ...rest }),

  find: createBatchLoader(async (commandIds) => {
    const found = await commands.find({ _id: { $in: commandIds } }).toArray()
    return byKey(found.map(toCommand), ({ commandId }) => commandId)
  }),

  async findOperation(sessionId: string, operationId: string): Promise<Command | undefined> {
    const found = await commands.findOne({ sessionId, operationId })
    return found ? toCommand(found) : undefined
  },

  /** Returns commands of a session, latest first. */
  async list(sessionId: string, limit: number): Promise<Command[]> {
    const latest = { sort: { requestedAt: -1, _id: -1 }, limit } as const
    return (await commands.find({ sessionId }, latest).toArray()).map(toCommand)
  },

  /** Returns undefined if the state is no longer `from`. */
  async move(commandId: string, from: CommandState, step: Transition, expiresAt?: Date): Promise<Command | undefined> {
    const moved = await commands.findOneAndUpdate(
      { _id: commandId, state: from },
      { $set: { state: step.state, expiresAt }, $push: { transitions: step } },
      { returnDocument: 'after' },
    )
    return moved ? toCommand(moved) : undefined
  },

  /**
   * Registers the file of an upload before its first byte is written, so that the cleanup finds it after a
   * crash. Returns false if the command allows no upload now.
   */
  async beginUpload(commandId: string, upload: Upload, maxUploads: number) {
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

  /** Makes a file the screenshot. Returns undefined if there is no consent or the file was abandoned. */
  async completeUpload(commandId: string, step: Transition, screenshot: UploadedScreenshot) {
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

  /** Marks a file as abandoned. Returns false if it is the screenshot of the command, or is unknown. */
  async abandonUpload(commandId: string, fileId: string) {
    const { matchedCount } = await commands.updateOne(
      { _id: commandId, 'uploads.fileId': fileId },
      { $set: { 'uploads.$.abandoned': true } },
    )
    return matchedCount === 1
  },
}))

export const toCommand = ({ _id, ...rest }: CommandDocument): Command => ({ commandId: _id, ...rest })
