#!/usr/bin/python3
"""Lessons 1 and 4: sends messages, each into a separate receive. send.py [BYTES [MESSAGES]]"""
import sys

from verbs import pair

length, messages = ([int(word) for word in sys.argv[1:]] + [5, 1][len(sys.argv) - 1:])
left, right = pair()
for number in range(messages):
    right.receive(wr_id=100 + number)
left.write_memory("hello" * (length // 5))
for number in range(messages):
    left.send(wr_id=1 + number, length=length)
left.completions(messages)
right.completions(messages)
print("received:", right.read_memory(5))
