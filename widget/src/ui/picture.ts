import { element } from './elements.ts'

/** A picture over initials: https only, without a referrer, and removed if it fails to load. */
export function picture(address: string | undefined): HTMLImageElement[] {
  if (!address || !URL.canParse(address) || new URL(address).protocol !== 'https:') return []
  const image = element('img', { referrerpolicy: 'no-referrer', decoding: 'async', alt: '', src: address })
  image.addEventListener('error', () => image.remove())
  return [image]
}
