import { type GridFSBucket, MongoRuntimeError, ObjectId } from 'mongodb'

/** The bytes of screenshots, under ids that are created before writing. */
export interface ScreenshotStore {
  newFileId(): string
  /**
   * Resolves when every byte is durable. Errors: those of the chunks and of the store; the caller
   * must then delete the file.
   */
  write(fileId: string, name: string, chunks: AsyncIterable<Uint8Array>): Promise<void>
  read(fileId: string): AsyncIterable<Uint8Array>
  /** Deletes all data of a file, also of an unfinished one. */
  delete(fileId: string): Promise<void>
}

export function createScreenshotStore(bucket: GridFSBucket): ScreenshotStore {
  return {
    newFileId: () => new ObjectId().toHexString(),

    async write(fileId, name, chunks) {
      const stream = bucket.openUploadStreamWithId(new ObjectId(fileId), name)
      // The callback of the failing write reports the same error.
      stream.on('error', () => {})
      try {
        // One write at a time: when the chunks fail, no write is under way that could follow the
        // deletion.
        for await (const chunk of chunks) await settled((done) => stream.write(chunk, done))
        await settled((done) => stream.end(done))
      } catch (error) {
        stream.destroy()
        throw error
      }
    },

    read: (fileId) => bucket.openDownloadStream(new ObjectId(fileId)),

    async delete(fileId) {
      try {
        await bucket.delete(new ObjectId(fileId))
      } catch (error) {
        // The chunks are deleted; an unfinished file has no document.
        if (!(error instanceof MongoRuntimeError && error.message.startsWith('File not found'))) throw error
      }
    },
  }
}

function settled(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())))
}
