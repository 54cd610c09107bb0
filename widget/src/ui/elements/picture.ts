import { element } from './elements.ts'

/**
 * Creates a picture that covers the initials of an avatar. The picture is requested without a
 * referrer and is removed if loading fails. Returns an empty array if the URL is not https.
 */
export function picture(address: string | undefined): HTMLImageElement[] {
  if (!address || !URL.canParse(address) || new URL(address).protocol !== 'https:') return []
  const image = element('img', { referrerpolicy: 'no-referrer', decoding: 'async', alt: '', src: address })
  image.addEventListener('error', () => image.remove())
  return [image]
}
