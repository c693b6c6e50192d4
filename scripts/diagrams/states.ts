// A state diagram, laid out by Graphviz.

import { type Graph, instance } from '@viz-js/viz'

/** Graphviz counts in points and draws in them; the page has pixels. */
const scale = 1.25
const font = 'Helvetica'

type Attributes = Record<string, string | number | boolean>

/** `lines` are those of a stateDiagram-v2: transitions, `[*]`, and notes beside a state. */
export async function statesSvg(lines: readonly string[]): Promise<string> {
  const nodes = new Map<string, Attributes>()
  const edges: { tail: string; head: string; attributes: Attributes }[] = []
  for (const line of lines) {
    const [, from, to, label = ''] = /^(\S+) --> ([^\s:]+)(?:: (.*))?$/.exec(line) ?? []
    const [, noted, note] = /^note (?:right|left) of (\S+): (.*)$/.exec(line) ?? []
    if (from !== undefined && to !== undefined) {
      const [tail, head] = [from === '[*]' ? 'begin' : from, to === '[*]' ? 'end' : to]
      for (const name of [tail, head]) nodes.set(name, shapeOf(name))
      edges.push({ tail, head, attributes: { label: label && `   ${label}   ` } })
    } else if (noted !== undefined) {
      nodes.set('note', { shape: 'note', label: note!, class: 'note', margin: '0.15,0.08' })
      edges.push({ tail: noted, head: 'note', attributes: { class: 'note', arrowhead: 'none' } })
    } else if (line !== '') throw new Error(`not a line of a state diagram that is drawn here: ${line}`)
  }
  const viz = await instance()
  return cleaned(viz.renderString(graphOf(nodes, edges), { format: 'svg' }))
}

function graphOf(nodes: Map<string, Attributes>, edges: NonNullable<Graph['edges']>): Graph {
  return {
    graphAttributes: { nodesep: 0.45, ranksep: 0.5, pad: 0.05 },
    nodeAttributes: {
      shape: 'box',
      style: 'rounded',
      fontname: font,
      fontsize: 11,
      height: 0.36,
      margin: '0.16,0.06',
    },
    edgeAttributes: { fontname: font, fontsize: 9.5, arrowsize: 0.6 },
    nodes: [...nodes].map(([name, attributes]) => ({ name, attributes })),
    edges,
  }
}

function shapeOf(name: string): Attributes {
  if (name === 'begin') return { shape: 'circle', label: '', width: 0.16, height: 0.16, class: 'begin' }
  if (name === 'end') return { shape: 'doublecircle', label: '', width: 0.12, height: 0.12, class: 'end' }
  return { label: name }
}

/** The classes stay; colours, fonts, names and comments go. */
function cleaned(svg: string): string {
  return svg
    .slice(svg.indexOf('<svg'))
    .replace(/<!--[\s\S]*?-->|<title>[\s\S]*?<\/title>/g, '')
    .replace(/<polygon fill="white"[^>]*\/>/, '')
    .replace(/ (?:id|xmlns(?::xlink)?|xml:space|fill|stroke|stroke-width|font-family)="[^"]*"/g, '')
    .replace(/(width|height)="([\d.]+)pt"/g, (_, side, points) => `${side}="${Math.ceil(points * scale)}"`)
    .replace(/-?\d+\.\d+/g, (number) => String(Math.round(Number(number) * 10) / 10))
    .replaceAll('&#45;', '-')
    .replaceAll('&#160;', ' ')
    .replace(/\n\s*/g, ' ')
    .replaceAll('> <', '><')
    .trim()
}
