"""What a chart shows, in words; and the chart itself where no script draws it."""

from django import template

from pgperf.reports import chart_findings, svg_chart

register = template.Library()

register.filter("finding", chart_findings.finding)
register.filter("svg", svg_chart.svg)
register.filter("legend", svg_chart.legend)
register.filter("has_whiskers", svg_chart.has_whiskers)
