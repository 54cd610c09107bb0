import { type Lamp, lamps } from './catalogue.ts'

const wood = '#b98a58'
const steel = '#2b2f2a'
const glass = '#fff4d6'
const linen = '#f7efe0'

/** Each lamp as a drawing of 400 by 340, its halo first. */
const drawings: Record<string, { halo: [x: number, y: number, r: number]; shapes: string }> = {
  fjord: {
    halo: [200, 140, 116],
    shapes: `<path fill="${wood}" d="M186 208h28v62h-28z"/><rect fill="${wood}" x="142" y="268" width="116" height="16" rx="8"/><circle fill="${glass}" cx="200" cy="140" r="70"/>`,
  },
  skog: {
    halo: [200, 214, 104],
    shapes: `<path stroke="${steel}" d="M200 0v104"/><circle fill="${glass}" cx="200" cy="206" r="22"/><path fill="${wood}" d="M88 202a112 98 0 0 1 224 0z"/><path stroke="#9c7145" d="M88 202h224"/>`,
  },
  myr: {
    halo: [272, 160, 100],
    shapes: `<path stroke="${steel}" d="M136 276V132l98-58"/><circle fill="${steel}" cx="136" cy="132" r="8"/><circle fill="${glass}" cx="256" cy="132" r="19"/><path fill="${steel}" d="M212 64l66 10-10 60-72-26z"/><rect fill="${steel}" x="92" y="272" width="90" height="13" rx="6"/>`,
  },
  holm: {
    halo: [200, 104, 104],
    shapes: `<path stroke="${wood}" stroke-width="9" d="M200 142L148 300M200 142l52 158M200 142v150"/><path fill="${linen}" d="M154 46h92l24 98H130z"/><path stroke="#d9c6aa" d="M130 144h140"/>`,
  },
  vind: {
    halo: [200, 172, 106],
    shapes: `<path stroke="${steel}" d="M200 0v92"/><path fill="#fffdf8" d="M200 92l86 62-34 84H148l-34-84z"/><path stroke="#cfc9de" stroke-width="2.5" d="M200 92v146M200 92l-52 146M200 92l52 146M114 154h172"/>`,
  },
  strand: {
    halo: [270, 148, 84],
    shapes: `<path stroke="${steel}" d="M120 286C96 120 150 40 222 52c34 6 48 30 48 64"/><path fill="#5e686b" fill-opacity=".55" d="M270 112c26 28 34 42 34 56a34 34 0 0 1-68 0c0-14 8-28 34-56z"/><circle fill="${glass}" cx="270" cy="166" r="15"/><ellipse fill="#8d9490" cx="122" cy="284" rx="48" ry="16"/>`,
  },
}

/** The lamp's picture, as the text of an SVG file. */
function drawLamp({ id, tone }: Lamp): string {
  const { halo, shapes } = drawings[id]!
  const [x, y, r] = halo
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 340"><rect width="400" height="340" fill="${tone}"/><circle cx="${x}" cy="${y}" r="${r}" fill="#fff" opacity=".6"/><g fill="none" stroke-width="5" stroke-linejoin="round">${shapes}</g></svg>`
}

/** Every lamp's picture by the lamp's id. */
export const drawLamps = (): Map<string, string> => new Map(lamps.map((lamp) => [lamp.id, drawLamp(lamp)]))
