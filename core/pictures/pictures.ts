import { createHash } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { invalid, ServiceError } from '../errors.ts'
import { field, pictureUrl, validate } from '../rules.ts'
import { type Image, readImage } from './image-model.ts'
import { faceOf, logoOf } from './model.ts'
import type { PictureStore } from './picture-store.ts'

interface NewPicture {
  workspaceId: string
  /** The file; empty to remove the picture. */
  image: Uint8Array
  /** Origin of the gateways. Used only if the setting `PUBLIC_URL` is empty. */
  gatewayOrigin: string
}

/** Pictures of operators and logos of installations. Visitors get them without a session. */
export interface Pictures {
  /**
   * Sets or removes the picture of an operator and returns its URL. Errors: `ValidationFailed`, also
   * if the workspace has too many pictures.
   */
  setFace(operator: string, picture: NewPicture): Promise<string | undefined>
  /** Returns the URLs of the operators' pictures by operator. */
  facesOf(workspaceId: string, operators: string[]): Promise<Map<string, string>>
  /** Postpones the removal of the operator's picture. Call at each sign-in. */
  keepFace(workspaceId: string, operator: string): Promise<void>
  /**
   * Stores a logo, calls `save` with its URL and then removes other logos of the installation that it
   * does not use. Errors: those of `setFace` and of `save`.
   */
  setLogo(
    siteKey: string,
    logo: NewPicture,
    save: (url: string | undefined) => Promise<string | undefined>,
  ): Promise<void>
  /** Returns a picture. Errors: `NotFound`. */
  find(id: string): Promise<Image>
}

const maxBytes = 65_536
const maxPixels = 512
const maxPictures = 500
/** Maximum number of pictures of one owner: the current one, and those that old answers show. */
const maxOfOwner = 5
const dayMs = 86_400_000
const faceLifetimeMs = 180 * dayMs
const replacedLifetimeMs = 30 * dayMs

export function createPictures(dependencies: {
  store: PictureStore
  /** Origin of the gateways for visitors; empty if the caller names it. */
  publicUrl: string
  now: () => number
}): Pictures {
  const { store, publicUrl, now } = dependencies
  const after = (ms: number) => new Date(now() + ms)

  async function put(owner: string, { workspaceId, image, gatewayOrigin }: NewPicture, deleteAt?: Date) {
    const origin = publicUrl || gatewayOrigin
    const read = image.length > maxBytes ? 'maxLength' : readImage(image, maxPixels)
    validate(
      typeof read === 'string' ? { path: '/image', rule: read } : undefined,
      field('/gatewayOrigin', origin, (value) => (URL.parse(value)?.origin === value ? pictureUrl(value) : 'format')),
    )
    if ((await store.countOfOthers(workspaceId, owner)) >= maxPictures) throw invalid('/image', 'maxItems')
    const { content, contentType } = read as Image
    const hash = createHash('sha256').update(`${workspaceId}\n${owner}\n`).update(content)
    const id = hash.digest('base64url')
    const url = `${origin}${WIDGET_PREFIX}/pictures/${id}`
    await store.put({
      id,
      workspaceId,
      owner,
      url,
      contentType,
      content,
      storedAt: after(0),
      ...(deleteAt && { deleteAt }),
    })
    return url
  }

  /** Removes the oldest pictures of an owner, and later the others except the one that is used. */
  async function retireOthers(workspaceId: string, owner: string, used: string | undefined) {
    const others = (await store.list(workspaceId, [owner])).filter(({ url }) => url !== used).map(({ id }) => id)
    await store.remove(others.slice(used === undefined ? 0 : maxOfOwner - 1))
    await store.keep(others, after(replacedLifetimeMs))
  }

  return {
    async setFace(operator, picture) {
      const owner = faceOf(operator)
      const url = picture.image.length > 0 ? await put(owner, picture, after(faceLifetimeMs)) : undefined
      await retireOthers(picture.workspaceId, owner, url)
      return url
    },

    async facesOf(workspaceId, operators) {
      const found = new Map<string, string>()
      for (const { owner, url } of await store.list(workspaceId, operators.map(faceOf)))
        if (!found.has(owner)) found.set(owner, url)
      return new Map(
        operators.flatMap((operator) => {
          const url = found.get(faceOf(operator))
          return url === undefined ? [] : [[operator, url]]
        }),
      )
    },

    async keepFace(workspaceId, operator) {
      const [newest] = await store.list(workspaceId, [faceOf(operator)])
      if (newest) await store.keep([newest.id], after(faceLifetimeMs))
    },

    async setLogo(siteKey, logo, save) {
      const owner = logoOf(siteKey)
      const used = await save(logo.image.length > 0 ? await put(owner, logo) : undefined)
      await retireOthers(logo.workspaceId, owner, used)
    },

    async find(id) {
      const found = await store.find(id)
      if (!found) throw new ServiceError(ErrorCode.NOT_FOUND)
      return found
    },
  }
}
