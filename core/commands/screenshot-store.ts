import { MongoRuntimeError, ObjectId } from 'mongodb'
import { perCore } from '../core.ts'

/**
 * Stores the bytes of screenshots. The caller gets the id of a file from `newFileId` before it
 * writes the file.
 */
export const screenshotStoreOf = perCore(({ database: { screenshots: bucket } }) => {
  return {
    newFileId: () => new ObjectId().toHexString(),

    /**
     * Writes a file. Resolves when every byte is durable. Rejects with errors of the chunks and of
     * the store; the caller must then delete the file.
     */
    async write(fileId: string, name: string, chunks: AsyncIterable<Uint8Array>) {
      const stream = bucket.openUploadStreamWithId(new ObjectId(fileId), name)
      // Without a listener, the error would end the process. The callback of the failing write
      // reports the same error.
      stream.on('error', () => {})
      try {
        // Waits for the write of each chunk, so that no write is running if `chunks` throws. A
        // running write could store data after the caller has deleted the file.
        for await (const chunk of chunks) await settled((done) => stream.write(chunk, done))
        await settled((done) => stream.end(done))
      } catch (error) {
        stream.destroy()
        throw error
      }
    },

    read: (fileId: string): AsyncIterable<Uint8Array> => bucket.openDownloadStream(new ObjectId(fileId)),

    /** Deletes all data of a file, including a file that is not completely written. */
    async delete(fileId: string) {
      try {
        await bucket.delete(new ObjectId(fileId))
      } catch (error) {
        // The driver reports this error if an unfinished file has no file document. The driver has
        // already deleted the chunks.
        if (!(error instanceof MongoRuntimeError && error.message.startsWith('File not found'))) throw error
      }
    },
  }
})

function settled(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())))
}
