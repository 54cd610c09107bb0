const size = 64
const maxCount = 99

/** Shows the number of unread conversations in the icons of the browser tab and of the home screen. */
export function createPageBadge(link: HTMLLinkElement) {
  const plain = link.href
  // The icon of the home screen may still show the count of an earlier visit.
  let shown = -1
  let address: string | undefined

  return async (count: number) => {
    if (count === shown) return
    shown = count
    void navigator.setAppBadge?.(count).catch(() => {})
    const blob = count === 0 ? undefined : await draw(count)
    if (count !== shown) return
    if (address) URL.revokeObjectURL(address)
    address = blob && URL.createObjectURL(blob)
    link.type = address ? 'image/png' : 'image/svg+xml'
    link.href = address ?? plain
  }

  async function draw(count: number): Promise<Blob> {
    const icon = new Image(size, size)
    icon.src = plain
    await icon.decode()
    const canvas = new OffscreenCanvas(size, size)
    const context = canvas.getContext('2d')!
    context.drawImage(icon, 0, 0, size, size)
    const text = count > maxCount ? `${maxCount}+` : String(count)
    context.font = `bold ${text.length > 2 ? 26 : 34}px sans-serif`
    const width = Math.max(40, context.measureText(text).width + 16)
    context.fillStyle = '#c62828'
    context.beginPath()
    context.roundRect(size - width, size - 40, width, 40, 20)
    context.fill()
    context.fillStyle = '#fff'
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.fillText(text, size - width / 2, size - 19)
    return canvas.convertToBlob()
  }
}
