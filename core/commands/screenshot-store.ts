import { type GridFSBucket, MongoRuntimeError, ObjectId } from 'mongodb'

/** The bytes of screenshots, each under an id that is made before it is written. */
export interface ScreenshotStore {
  newFileId(): string
  /** Resolves when every byte is durable. Errors: those of the chunks and of the store; what was written is to be deleted. */
  write(fileId: string, name: string, chunks: AsyncIterable<Uint8Array>): Promise<void>
  read(fileId: string): AsyncIterable<Uint8Array>
  /** Deletes whatever there is of it, also of a file that was never finished. */
  delete(fileId: string): Promise<void>
}

export function createScreenshotStore(bucket: GridFSBucket): ScreenshotStore {
  return {
    newFileId: () => new ObjectId().toHexString(),

    async write(fileId, name, chunks) {
      const stream = bucket.openUploadStreamWithId(new ObjectId(fileId), name)
      // Each failure also reaches the callback of the write that met it.
      stream.on('error', () => {})
      try {
        // One write at a time: none is under way when the chunks break off, so none lands after the deletion.
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
        // The chunks are deleted, there was no file to go with them.
        if (!(error instanceof MongoRuntimeError && error.message.startsWith('File not found'))) throw error
      }
    },
  }
}

function settled(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())))
}
