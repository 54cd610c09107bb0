import { element } from './elements.ts'

/**
 * Creates a picture that covers the initials of an avatar. The picture is requested without a
 * referrer and is removed if loading fails. Returns an empty array unless the URL is http or https.
 */
export function picture(address: string | undefined): HTMLImageElement[] {
  if (!address?.startsWith('http')) return []
  const image = element('img', { referrerpolicy: 'no-referrer', decoding: 'async', alt: '', src: address })
  image.addEventListener('error', () => image.remove())
  return [image]
}
