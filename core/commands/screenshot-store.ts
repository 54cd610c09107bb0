import { MongoRuntimeError, ObjectId } from 'mongodb'
import { perCore } from '../core.ts'

/** Stores the bytes of screenshots. The caller gets the id of a file before it writes the file. */
export const screenshotStoreOf = perCore(({ database: { screenshots: bucket } }) => {
  return {
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
  }
})

function settled(start: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())))
}
