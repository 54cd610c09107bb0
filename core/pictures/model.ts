import type { Binary } from 'mongodb'
import type { Image } from './image-model.ts'

export interface PictureDocument extends Omit<Image, 'content'> {
  _id: string
  content: Binary
  workspaceId: string
  owner: string
  url: string
  storedAt: Date
  deleteAt?: Date
}

/** An owner has one present picture. */
export const faceOf = (operator: string): string => `operator ${operator}`
export const logoOf = (siteKey: string): string => `installation ${siteKey}`
