import { Binary, type Collection } from 'mongodb'
import type { Image } from './image-model.ts'

interface Picture extends Image {
  id: string
  workspaceId: string
  /** The operator or the installation that shows the picture. */
  owner: string
  /** Public URL. */
  url: string
  storedAt: Date
  deleteAt?: Date
}

export type PictureDocument = { _id: string; content: Binary } & Omit<Picture, 'id' | 'content'>

export interface PictureStore {
  /** Stores a picture. If it exists, it becomes the newest one of its owner. */
  put(picture: Picture): Promise<void>
  find(id: string): Promise<Image | undefined>
  /** Returns the ids and URLs of the owners' pictures, newest first. */
  list(workspaceId: string, owners: string[]): Promise<Pick<Picture, 'id' | 'owner' | 'url'>[]>
  countOfOthers(workspaceId: string, owner: string): Promise<number>
  /** Sets when pictures are deleted. Without `deleteAt` they are kept. */
  keep(ids: string[], deleteAt: Date | undefined): Promise<void>
  remove(ids: string[]): Promise<void>
}

export function createPictureStore({ pictures }: { pictures: Collection<PictureDocument> }): PictureStore {
  return {
    async put({ id, content, ...picture }) {
      await pictures.replaceOne({ _id: id }, { ...picture, content: new Binary(content) }, { upsert: true })
    },

    async find(id) {
      const found = await pictures.findOne({ _id: id }, { projection: { content: 1, contentType: 1 } })
      return found ? { contentType: found.contentType, content: found.content.value() } : undefined
    },

    async list(workspaceId, owners) {
      const found = pictures
        .find({ workspaceId, owner: { $in: owners } }, { projection: { owner: 1, url: 1 } })
        .sort({ storedAt: -1, _id: 1 })
      return (await found.toArray()).map(({ _id, owner, url }) => ({ id: _id, owner, url }))
    },

    countOfOthers: (workspaceId, owner) => pictures.countDocuments({ workspaceId, owner: { $ne: owner } }),

    async keep(ids, deleteAt) {
      await pictures.updateMany({ _id: { $in: ids } }, deleteAt ? { $set: { deleteAt } } : { $unset: { deleteAt: '' } })
    },

    async remove(ids) {
      await pictures.deleteMany({ _id: { $in: ids } })
    },
  }
}
