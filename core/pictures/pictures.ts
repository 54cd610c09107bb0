import { createHash } from 'node:crypto'
import { Binary } from 'mongodb'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { type Core, dateOf } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { field, pictureUrl, validate } from '../rules.ts'
import { type Image, readImage } from './image-model.ts'

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

interface NewPicture {
  workspaceId: string
  /** The file; empty to remove the picture. */
  image: Uint8Array
  /** Origin of the gateways, for an empty `PUBLIC_URL`. */
  gatewayOrigin: string
}

const maxBytes = 65_536
const maxPixels = 512
const maxPictures = 500
/** An owner has the present picture, and those that old answers show. */
const maxOfOwner = 5
const dayMs = 86_400_000
const faceLifetimeMs = 180 * dayMs
const replacedLifetimeMs = 30 * dayMs

/** Returns the URL of the new picture. Errors: `ValidationFailed`, also for too many pictures. */
export async function setFace(core: Core, operator: string, picture: NewPicture): Promise<string | undefined> {
  const owner = faceOf(operator)
  const isSet = picture.image.length > 0
  const url = isSet ? await putPicture(core, owner, picture, { deleteAt: dateOf(core, faceLifetimeMs) }) : undefined
  await retireOthers(core, picture.workspaceId, owner, url)
  return url
}

export async function facesOf(core: Core, workspaceId: string, operators: string[]): Promise<Map<string, string>> {
  const found = await picturesOf(core, workspaceId, operators.map(faceOf))
  // The newest picture of an operator is set last, so it replaces the others.
  return new Map(found.reverse().map(({ owner, url }) => [owner.slice(faceOf('').length), url]))
}

/** Postpones the end of an operator's picture. Called at each sign-in. */
export async function keepFace(core: Core, workspaceId: string, operator: string) {
  const [newest] = await picturesOf(core, workspaceId, [faceOf(operator)])
  if (newest) await deleteLater(core, [newest._id], faceLifetimeMs)
}

/** Stores a logo, calls `save` with its URL, then removes unused logos. Errors: also those of `save`. */
export async function setLogo(
  core: Core,
  siteKey: string,
  logo: NewPicture,
  save: (url: string | undefined) => Promise<string | undefined>,
) {
  const owner = logoOf(siteKey)
  const used = await save(logo.image.length > 0 ? await putPicture(core, owner, logo) : undefined)
  await retireOthers(core, logo.workspaceId, owner, used)
}

/** Returns a picture. Errors: `NotFound`. */
export async function findPicture({ db }: Core, id: string): Promise<Image> {
  const found = await db.pictures.findOne({ _id: id }, { projection: { content: 1, contentType: 1 } })
  if (!found) throw new ServiceError('NotFound')
  return { contentType: found.contentType, content: found.content.value() }
}

/** Stores a picture and returns its URL. One that exists becomes the newest of its owner. */
async function putPicture(core: Core, owner: string, picture: NewPicture, expiry: { deleteAt?: Date } = {}) {
  const { workspaceId, image, gatewayOrigin } = picture
  const origin = core.config.PUBLIC_URL || gatewayOrigin
  const read = image.length > maxBytes ? 'maxLength' : readImage(image, maxPixels)
  validate(
    typeof read === 'string' ? { path: '/image', rule: read } : undefined,
    field('/gatewayOrigin', origin, (value) => (URL.parse(value)?.origin === value ? pictureUrl(value) : 'format')),
  )
  const others = await core.db.pictures.countDocuments({ workspaceId, owner: { $ne: owner } })
  if (others >= maxPictures) throw invalid('/image', 'maxItems')
  const { content, contentType } = read as Image
  const _id = createHash('sha256').update(`${workspaceId}\n${owner}\n`).update(content).digest('base64url')
  const url = `${origin}${WIDGET_PREFIX}/pictures/${_id}`
  const stored = { workspaceId, owner, url, contentType, content: new Binary(content), storedAt: dateOf(core) }
  await core.db.pictures.replaceOne({ _id }, { ...stored, ...expiry }, { upsert: true })
  return url
}

/** Removes the oldest pictures of an owner, and later the others except the used one. */
async function retireOthers(core: Core, workspaceId: string, owner: string, used: string | undefined) {
  const others = (await picturesOf(core, workspaceId, [owner])).flatMap(({ _id, url }) => (url === used ? [] : _id))
  await core.db.pictures.deleteMany({ _id: { $in: others.slice(used === undefined ? 0 : maxOfOwner - 1) } })
  await deleteLater(core, others, replacedLifetimeMs)
}

/** Returns pictures, newest first. */
const picturesOf = ({ db }: Core, workspaceId: string, owners: string[]) =>
  db.pictures
    .find({ workspaceId, owner: { $in: owners } }, { projection: { owner: 1, url: 1 } })
    .sort({ storedAt: -1, _id: 1 })
    .toArray()

const deleteLater = (core: Core, ids: string[], ms: number) =>
  core.db.pictures.updateMany({ _id: { $in: ids } }, { $set: { deleteAt: dateOf(core, ms) } })
